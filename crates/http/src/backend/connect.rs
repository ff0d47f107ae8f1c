//! A connection to the server that was chosen: one that is idle, or a new one.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, ready};

use ::upstream::pool::{PoolKey, PoolOrigin};
use ::upstream::{Group, Lease};
use net::accept::Transport;
use net::{Address, Connect, Connecting, Stream, Timer};
use observe::Level;
pub(crate) use session::backend::CONNECTING;
use session::backend::{
    Bind, ConnectTrouble, LocalAddress, SECURING, SecuredConnections, log_failed, log_refused,
};

use super::Conf;
use super::call::{Trouble, timed_out};
use super::caller::Caller;
use super::carrier::CarrierConnection;
use crate::exchange::Exchange;

/// A connection, and whether it has carried a request before.
pub(super) struct Connected<L> {
    pub(super) connection: L,
    pub(super) reused: bool,
}

/// The local address that connections of this exchange are made from, if one is asked for; `Err`:
/// it is none.
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

/// How connections are opened.
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

/// What secures connections that no directive secures: tests do.
fn test_transport() -> Option<Arc<dyn Transport>> {
    #[cfg(test)]
    return crate::testing::transport(net::testing::RelaySide::Client);
    #[cfg(not(test))]
    None
}

/// Which server to connect to, and how.
pub(super) struct ConnectPlan<'a> {
    pub(super) group: &'a Group,
    pub(super) lease: &'a Lease,
    pub(super) conf: &'a Conf,
    pub(super) secured: Option<&'a SecuredConnections<'a>>,
    pub(super) origin: Option<Arc<PoolOrigin>>,
    /// Whether it may be a connection that the group has.
    pub(super) reuses: bool,
}

impl ConnectPlan<'_> {
    /// A connection that the group has to the server, else a new one.
    pub(super) async fn connect<L: CarrierConnection>(
        self,
        caller: &mut impl Caller,
        timer: &Timer,
    ) -> Result<Connected<L>, Trouble> {
        let Self { group, lease, conf, secured, .. } = self;
        // What is in this block need not be kept while a connection is waited for.
        let connecting = {
            let key = self.key();
            if self.reuses
                && let Some(connection) = L::take(group.pool(), &key)
            {
                return Ok(Connected { connection, reused: true });
            }
            caller.set_action(CONNECTING);
            let transport = match secured {
                Some(secured) => Some(transport(caller, secured, &key.to, L::PROTOCOLS)?),
                None => None,
            };
            let from = key.origin.as_ref().and_then(|origin| origin.from);
            begin(caller, &key.to, lease.name(), &connect_options(conf, from, transport))?
        };
        timer.set(conf.connect_timeout.0);
        let stream = finish(caller, connecting, secured, timer).await?;
        let connection = L::begin(stream, group.pool(), || self.key());
        Ok(Connected { connection, reused: false })
    }

    fn key(&self) -> PoolKey {
        PoolKey { to: self.lease.address().clone(), origin: self.origin.clone() }
    }
}

/// Begins to open a connection. `name` is the server's in log lines.
pub(super) fn begin(
    caller: &mut impl Caller,
    to: &Address,
    name: &[u8],
    options: &Connect,
) -> Result<Connecting, Trouble> {
    caller.set_action(CONNECTING);
    options.begin(to).map_err(|refusal| refused(caller, name, options, refusal))
}

/// The connection, if it is there before the timer's time is over.
pub(super) async fn finish(
    caller: &mut impl Caller,
    mut connecting: Connecting,
    secured: Option<&SecuredConnections<'_>>,
    timer: &Timer,
) -> Result<Stream, Trouble> {
    let connected = poll_fn(|cx| match connecting.poll(cx) {
        Poll::Ready(connected) => Poll::Ready(Some(connected)),
        Poll::Pending => {
            if secured.is_some() && connecting.is_securing() {
                caller.set_action(SECURING);
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
                Err(Trouble::Error)
            }
            None => Err(failed(caller, &error)),
        },
        Some(Ok(stream)) => Ok(stream),
    }
}

/// What secures a connection to a server.
pub(super) fn transport(
    caller: &mut impl Caller,
    secured: &SecuredConnections<'_>,
    to: &Address,
    protocols: &[&[u8]],
) -> Result<Arc<dyn Transport>, Trouble> {
    let protocols: Vec<_> = protocols.iter().map(|name| (*name).into()).collect();
    secured
        .transport(to, &protocols, |level, message| caller.log(level, message))
        .map_err(Trouble::from)
}

/// A call that failed at once.
fn refused(
    caller: &mut impl Caller,
    name: &[u8],
    options: &Connect,
    refusal: (&str, io::Error),
) -> Trouble {
    let log = |level, message: fmt::Arguments<'_>| caller.log(level, message);
    log_refused(refusal, name, options.from, log).into()
}

impl From<ConnectTrouble> for Trouble {
    fn from(trouble: ConnectTrouble) -> Self {
        match trouble {
            ConnectTrouble::Server => Self::Error,
            ConnectTrouble::Internal => Self::Internal,
        }
    }
}

/// A connection that did not come about after all.
fn failed(caller: &mut impl Caller, error: &io::Error) -> Trouble {
    log_failed(error, |level, message| caller.log(level, message));
    Trouble::Error
}
