//! Failed connections to servers, and how nginx reports them.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use observe::{Errno, Level};

/// The action in log lines until there is a connection.
pub const CONNECTING: &str = "connecting to upstream";

/// The cause of a failed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectTrouble {
    /// The server: another one may succeed.
    Server,
    /// This machine: another server would fail as well.
    Internal,
}

/// Logs a call that failed at once. nginx then names the address: the server's `name`, or the local
/// address.
pub fn log_refused(
    (call, error): (&str, io::Error),
    name: &[u8],
    from: Option<SocketAddr>,
    log: impl FnOnce(Level, fmt::Arguments<'_>),
) -> ConnectTrouble {
    let errno = Errno(&error);
    match (call, from) {
        ("connect()", _) => {
            let name = observe::Text(name);
            let level = if is_common(&error) { Level::Error } else { Level::Crit };
            log(level, format_args!("connect() to {name} failed{errno}"));
            return ConnectTrouble::Server;
        }
        ("bind()", Some(from)) if from.port() == 0 => {
            log(Level::Crit, format_args!("bind({}) failed{errno}", from.ip()));
        }
        ("bind()", Some(from)) => log(Level::Crit, format_args!("bind({from}) failed{errno}")),
        _ => log(Level::Alert, format_args!("{call} failed{errno}")),
    }
    ConnectTrouble::Internal
}

/// Logs a connection that failed after it had begun.
pub fn log_failed(error: &io::Error, log: impl FnOnce(Level, fmt::Arguments<'_>)) {
    let is_usual = is_common(error) || error.kind() == io::ErrorKind::TimedOut;
    let level = if is_usual { Level::Error } else { Level::Alert };
    log(level, format_args!("connect() failed{}", Errno(error)));
}

/// Errors that any server may cause.
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
