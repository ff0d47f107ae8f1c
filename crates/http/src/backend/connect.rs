//! A connection to the server that was chosen: one that is idle, or a new one.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use ::upstream::pool::{self, Connection, Key};
use ::upstream::{Group, Lease};
use net::accept::Transport;
use net::{Connect, Timer};
use observe::{Errno, Level};

use super::Conf;
use super::ask::Trouble;
use super::local_address;
use super::values::Bind;
use crate::exchange::Exchange;

/// A connection, and whether it has been used before.
pub(super) struct Connected {
    pub(super) connection: Connection,
    pub(super) reused: bool,
}

/// How connections of this exchange are opened; `Err`: its local address is none.
pub(crate) fn manner(conf: &Conf, x: &mut Exchange) -> Result<Connect, ()> {
    let size = |bytes: u64| usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    let mut connect = Connect {
        from: None,
        transparent: false,
        rcvbuf: size(conf.socket_rcvbuf.0),
        sndbuf: size(conf.socket_sndbuf.0),
        keepalive: conf.socket_keepalive,
        transport: transport(),
    };
    if let Some(Bind::To { address, transparent }) = &conf.bind {
        let text = x.render(address);
        connect.transparent = *transparent;
        if !text.is_empty() {
            connect.from = local_address(&text);
            if connect.from.is_none() {
                let text = observe::Text(&text);
                x.log(Level::Error, format_args!("invalid local address \"{text}\""));
                return Err(());
            }
        }
    }
    Ok(connect)
}

/// What secures connections to backends. No directive says so yet; tests do.
fn transport() -> Option<Arc<dyn Transport>> {
    #[cfg(test)]
    return crate::testing::transport(net::testing::Side::Client);
    #[cfg(not(test))]
    None
}

/// An idle connection of the group to the server, else a new one.
pub(super) async fn connect(
    x: &mut Exchange,
    kept_by: Option<&Arc<Group>>,
    lease: &Lease,
    manner: &Connect,
    timeout_ms: u64,
    timer: &Timer,
) -> Result<Connected, Trouble> {
    let key = Key { to: lease.address().clone(), from: manner.from };
    if let Some(connection) = kept_by.and_then(|group| pool::take(group, &key)) {
        return Ok(Connected { connection, reused: true });
    }
    x.action = "connecting to upstream";
    let mut connecting = match manner.begin(&key.to) {
        Ok(connecting) => connecting,
        Err(refusal) => return Err(refused(x, lease, manner, refusal)),
    };
    timer.set(timeout_ms);
    let connected = poll_fn(|cx| match connecting.poll(cx) {
        Poll::Ready(connected) => Poll::Ready(Some(connected)),
        Poll::Pending => {
            ready!(timer.poll(cx));
            Poll::Ready(None)
        }
    });
    match connected.await {
        None => Err(timed_out(x)),
        Some(Err(error)) => Err(failed(x, &error)),
        Some(Ok(stream)) => Ok(Connected { connection: Connection::new(stream), reused: false }),
    }
}

/// A call that failed at once: nginx names the address then.
fn refused(
    x: &Exchange,
    lease: &Lease,
    manner: &Connect,
    (call, error): (&str, io::Error),
) -> Trouble {
    let errno = Errno(&error);
    match (call, manner.from) {
        ("connect()", _) => {
            let name = observe::Text(lease.name());
            let level = if is_common(&error) { Level::Error } else { Level::Crit };
            x.log(level, format_args!("connect() to {name} failed{errno}"));
            return Trouble::Error;
        }
        ("bind()", Some(from)) if from.port() == 0 => {
            x.log(Level::Crit, format_args!("bind({}) failed{errno}", from.ip()));
        }
        ("bind()", Some(from)) => x.log(Level::Crit, format_args!("bind({from}) failed{errno}")),
        _ => x.log(Level::Alert, format_args!("{call} failed{errno}")),
    }
    Trouble::Internal
}

/// A connection that did not come about after all.
fn failed(x: &Exchange, error: &io::Error) -> Trouble {
    let is_usual = is_common(error) || error.kind() == io::ErrorKind::TimedOut;
    let level = if is_usual { Level::Error } else { Level::Alert };
    x.log(level, format_args!("connect() failed{}", Errno(error)));
    Trouble::Error
}

/// What happens to anybody; all else is worth a look.
fn is_common(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown,
        NetworkUnreachable, NotConnected, WouldBlock,
    };
    matches!(
        error.kind(),
        BrokenPipe
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | NotConnected
            | WouldBlock
    )
}

/// It took too long, and that is logged.
pub(super) fn timed_out(x: &Exchange) -> Trouble {
    let error = net::timed_out();
    x.log(Level::Error, format_args!("upstream timed out{}", Errno(&error)));
    Trouble::Timeout
}
