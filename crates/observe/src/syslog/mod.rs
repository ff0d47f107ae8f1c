//! Log lines as datagrams to a syslog server, in the format of RFC 3164, as nginx sends them.
//!
//! Sending never waits: a datagram that the socket does not accept is lost, and a failed socket is
//! reopened by the next line.

mod target;

use std::cell::RefCell;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Weak};

use target::SyslogAddress;
pub use target::SyslogTarget;

use crate::lost::lose_line;
use crate::{Errno, Level, Stamps};

/// One writer's socket to a target.
pub struct SyslogSender {
    target: Arc<SyslogTarget>,
    socket: Reopening,
}

/// A socket that is opened by the first message, and again after a failure.
#[derive(Default)]
struct Reopening(Option<SyslogSocket>);

enum SyslogSocket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl SyslogSender {
    /// A sender that is not connected yet.
    pub fn new(target: Arc<SyslogTarget>) -> Self {
        Self { target, socket: Reopening::default() }
    }

    pub fn target(&self) -> &SyslogTarget {
        &self.target
    }

    /// Sends one message, which begins with [`SyslogTarget::write_head`].
    pub fn send(&mut self, message: &[u8]) -> Result<usize, SyslogError> {
        self.socket.send(&self.target, message)
    }
}

impl Reopening {
    fn send(&mut self, target: &SyslogTarget, message: &[u8]) -> Result<usize, SyslogError> {
        self.try_to_send(target, message).inspect_err(|_| lose_line())
    }

    fn try_to_send(&mut self, target: &SyslogTarget, message: &[u8]) -> Result<usize, SyslogError> {
        let socket = match &self.0 {
            Some(socket) => socket,
            None => self.0.insert(SyslogSocket::open(&target.address)?),
        };
        let sent = match socket {
            SyslogSocket::Udp(socket) => socket.send(message),
            SyslogSocket::Unix(socket) => socket.send(message),
        };
        sent.map_err(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                self.0 = None;
            }
            SyslogError { call: SEND, error }
        })
    }
}

thread_local! {
    /// This thread's sockets, each with its target from a configuration.
    static SOCKETS: RefCell<Vec<(Weak<SyslogTarget>, Reopening)>> =
        const { RefCell::new(Vec::new()) };
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sends one message from this thread: its header, then the text that `write` appends. Returns the
/// number of bytes sent, and the length of the message.
pub fn send(
    target: &Arc<SyslogTarget>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(usize, usize), SyslogError> {
    let mut message = MESSAGE.take();
    message.clear();
    target.write_head(target.severity(), &mut message);
    write(&mut message);
    let sent = SOCKETS.with_borrow_mut(|sockets| of_thread(sockets, target).send(target, &message));
    let length = message.len();
    MESSAGE.set(message);
    sent.map(|sent| (sent, length))
}

fn of_thread<'s>(
    sockets: &'s mut Vec<(Weak<SyslogTarget>, Reopening)>,
    target: &Arc<SyslogTarget>,
) -> &'s mut Reopening {
    let at = sockets.iter().position(|(known, _)| known.as_ptr() == Arc::as_ptr(target));
    let at = at.unwrap_or_else(|| {
        sockets.push((Arc::downgrade(target), Reopening::default()));
        sockets.len() - 1
    });
    &mut sockets[at].1
}

/// Closes this thread's sockets to targets of former configurations.
pub(crate) fn forget_old() {
    SOCKETS.with_borrow_mut(|sockets| sockets.retain(|(target, _)| target.strong_count() > 0));
}

const SEND: &str = "send()";

/// Why a message was not sent.
pub struct SyslogError {
    call: &'static str,
    error: io::Error,
}

impl SyslogError {
    /// Writes the error to the main log, in nginx's words. A full socket is not logged.
    pub fn tell(&self, target: &SyslogTarget) {
        let Some(level) = self.level() else { return };
        let (call, reason, server) = (self.call, Errno(&self.error), target.name());
        let message =
            format_args!("{call} failed{reason} while logging to syslog, server: {server}");
        crate::log(level, message);
    }

    /// Network failures are errors; any other reason needs attention.
    fn level(&self) -> Option<Level> {
        use io::ErrorKind::*;
        match self.error.kind() {
            WouldBlock => None,
            ConnectionReset | BrokenPipe | NotConnected | TimedOut | ConnectionRefused
            | NetworkDown | NetworkUnreachable | HostUnreachable
                if self.call == SEND =>
            {
                Some(Level::Error)
            }
            _ => Some(Level::Alert),
        }
    }
}

impl SyslogSocket {
    fn open(address: &SyslogAddress) -> Result<Self, SyslogError> {
        let failed = |call| move |error| SyslogError { call, error };
        match address {
            SyslogAddress::Ip(address) => {
                let own: std::net::IpAddr = match address {
                    std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                    std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((own, 0)).map_err(failed("socket()"))?;
                socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
                socket.connect(address).map_err(failed("connect()"))?;
                Ok(Self::Udp(socket))
            }
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound().map_err(failed("socket()"))?;
                socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
                socket.connect(path).map_err(failed("connect()"))?;
                Ok(Self::Unix(socket))
            }
        }
    }
}

impl SyslogTarget {
    /// Appends a message's header: `<PRI>Mon dd hh:mm:ss host tag: `.
    pub fn write_head(&self, severity: u8, out: &mut Vec<u8>) {
        let priority = u16::from(self.facility) * 8 + u16::from(severity);
        // Writing to a vector does not fail.
        let _ = write!(out, "<{priority}>");
        out.extend_from_slice(&Stamps::now().syslog);
        out.push(b' ');
        if !self.nohostname {
            out.extend_from_slice(crate::system().hostname.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(&self.tag);
        out.extend_from_slice(b": ");
    }
}
