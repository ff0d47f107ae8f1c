//! Opens connections to servers, for requests of clients and for health checks.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, ready};

use ::tls::backend::{SECURING, SecuredConnections};
use net::accept::Transport;
use net::{Address, Connect, Connecting, Stream, Timer};
use observe::Level;
pub(crate) use session::backend::CONNECTING;
use session::backend::{Bind, ConnectTrouble, LocalAddress, log_failed, log_refused};

use super::Conf;
use super::call::{CallError, timed_out};
use super::caller::Caller;
use crate::exchange::{Exchange, TimedPhase};

/// The local address of this exchange's connections, if `*_bind` sets one; `Err`: the configured
/// text is no address.
pub(crate) fn local_end(conf: &Conf, x: &mut Exchange) -> Result<Option<SocketAddr>, ()> {
    match conf.bind.as_ref().map(|bind| bind.address(x)) {
        None | Some(LocalAddress::Any) => Ok(None),
        Some(LocalAddress::At(address)) => Ok(Some(address)),
        Some(LocalAddress::Invalid(text)) => {
            let text = observe::Text(&text);
            x.log(Level::Error, format_args!("invalid local address \"{text}\""));
            Err(())
        }
    }
}

pub(crate) fn connect_options(
    conf: &Conf,
    from: Option<SocketAddr>,
    transport: Option<Arc<dyn Transport>>,
) -> Connect {
    let size = |bytes: u64| usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    Connect {
        from,
        transparent: conf.bind.as_ref().is_some_and(Bind::is_transparent),
        rcvbuf: size(conf.socket_rcvbuf.0),
        sndbuf: size(conf.socket_sndbuf.0),
        keepalive: conf.socket_keepalive,
        transport: transport.or_else(test_transport),
    }
}

/// The transport of connections without TLS settings: tests set one.
fn test_transport() -> Option<Arc<dyn Transport>> {
    #[cfg(test)]
    return crate::testing::transport(net::testing::RelaySide::Client);
    #[cfg(not(test))]
    None
}

/// Begins to open a connection. `name` is the server's in log lines.
pub(super) fn begin(
    caller: &mut impl Caller,
    to: &Address,
    name: &[u8],
    options: &Connect,
) -> Result<Connecting, CallError> {
    caller.set_action(CONNECTING);
    options.begin(to).map_err(|refusal| refused(caller, name, options, refusal))
}

/// Waits for the connection until the timer expires.
pub(super) async fn finish(
    caller: &mut impl Caller,
    mut connecting: Connecting,
    secured: Option<&SecuredConnections<'_>>,
    timer: &Timer,
) -> Result<Stream, CallError> {
    caller.waits_for(TimedPhase::Connect);
    let connected = poll_fn(|cx| match connecting.poll(cx) {
        Poll::Ready(connected) => Poll::Ready(Some(connected)),
        Poll::Pending => {
            if secured.is_some() && connecting.is_securing() {
                caller.set_action(SECURING);
                caller.waits_for(TimedPhase::BackendTls);
            }
            ready!(timer.poll(cx));
            Poll::Ready(None)
        }
    });
    let connected = connected.await;
    match connected {
        None => Err(timed_out(caller)),
        Some(Err(error)) => match secured.filter(|_| connecting.is_securing()) {
            Some(secured) => {
                caller.set_action(SECURING);
                secured.log_failed(&error, |level, message| caller.log(level, message));
                Err(CallError::Error)
            }
            None => Err(failed(caller, &error)),
        },
        Some(Ok(stream)) => Ok(stream),
    }
}

/// The TLS transport of a connection to a server.
pub(super) async fn transport(
    caller: &mut impl Caller,
    secured: &SecuredConnections<'_>,
    to: &Address,
    protocols: &[&[u8]],
    timer: &Timer,
) -> Result<Arc<dyn Transport>, CallError> {
    let protocols: Vec<_> = protocols.iter().map(|name| (*name).into()).collect();
    secured
        .transport(to, &protocols, timer, |level, message| caller.log(level, message))
        .await
        .map_err(CallError::from)
}

/// Logs a connection attempt that failed at once.
fn refused(
    caller: &mut impl Caller,
    name: &[u8],
    options: &Connect,
    refusal: (&str, io::Error),
) -> CallError {
    let log = |level, message: fmt::Arguments<'_>| caller.log(level, message);
    log_refused(refusal, name, options.from, log).into()
}

impl From<ConnectTrouble> for CallError {
    fn from(error: ConnectTrouble) -> Self {
        match error {
            ConnectTrouble::Server => Self::Error,
            ConnectTrouble::Internal => Self::Internal,
        }
    }
}

/// Logs a connection attempt that failed later.
fn failed(caller: &mut impl Caller, error: &io::Error) -> CallError {
    log_failed(error, |level, message| caller.log(level, message));
    CallError::Error
}
