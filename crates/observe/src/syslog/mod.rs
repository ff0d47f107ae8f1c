//! Log lines as datagrams to a syslog server: RFC 3164's form, as nginx sends it.
//!
//! Nothing waits: a datagram that the socket does not take is lost, and a socket that failed is
//! opened again by the next line.

mod target;

use std::cell::RefCell;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use target::Address;
pub use target::Target;

use crate::{Errno, Level, Stamps};

/// One writer's socket to a target.
pub struct Sender {
    target: Arc<Target>,
    socket: Option<Socket>,
}

enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Sender {
    /// A sender that has not connected yet.
    pub fn new(target: Arc<Target>) -> Self {
        Self { target, socket: None }
    }

    /// Where it sends to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Sends one message, which begins with [`Target::write_head`].
    pub fn send(&mut self, message: &[u8]) -> Result<usize, SendError> {
        let socket = match &self.socket {
            Some(socket) => socket,
            None => self.socket.insert(Socket::open(&self.target.address)?),
        };
        let sent = match socket {
            Socket::Udp(socket) => socket.send(message),
            Socket::Unix(socket) => socket.send(message),
        };
        sent.map_err(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                self.socket = None;
            }
            SendError { call: SEND, error }
        })
    }
}

thread_local! {
    static SENDERS: RefCell<Vec<Sender>> = const { RefCell::new(Vec::new()) };
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sends one message from this thread: its head, then what `write` appends. How many bytes went
/// out, and how many there were.
pub fn send(
    target: &Arc<Target>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(usize, usize), SendError> {
    let mut message = MESSAGE.take();
    message.clear();
    target.write_head(target.severity(), &mut message);
    write(&mut message);
    let sent = SENDERS.with_borrow_mut(|senders| of_thread(senders, target).send(&message));
    let length = message.len();
    MESSAGE.set(message);
    sent.map(|sent| (sent, length))
}

fn of_thread<'s>(senders: &'s mut Vec<Sender>, target: &Arc<Target>) -> &'s mut Sender {
    let at = senders.iter().position(|sender| Arc::ptr_eq(&sender.target, target));
    let at = at.unwrap_or_else(|| {
        // Those of configurations that are gone.
        senders.retain(|sender| Arc::strong_count(&sender.target) > 1);
        senders.push(Sender::new(target.clone()));
        senders.len() - 1
    });
    &mut senders[at]
}

const SEND: &str = "send()";

/// Why a message was not sent.
pub struct SendError {
    call: &'static str,
    error: io::Error,
}

impl SendError {
    /// Writes it to the main log, in nginx's words. A socket that is full is nothing to tell.
    pub fn tell(&self, target: &Target) {
        let Some(level) = self.level() else { return };
        let (call, reason, server) = (self.call, Errno(&self.error), target.name());
        let message =
            format_args!("{call} failed{reason} while logging to syslog, server: {server}");
        crate::log(level, message);
    }

    /// Networks fail; any other reason is one to look into.
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

impl Socket {
    fn open(address: &Address) -> Result<Self, SendError> {
        let failed = |call| move |error| SendError { call, error };
        match address {
            Address::Ip(address) => {
                let own: std::net::IpAddr = match address {
                    std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                    std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((own, 0)).map_err(failed("socket()"))?;
                socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
                socket.connect(address).map_err(failed("connect()"))?;
                Ok(Self::Udp(socket))
            }
            Address::Unix(path) => {
                let socket = UnixDatagram::unbound().map_err(failed("socket()"))?;
                socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
                socket.connect(path).map_err(failed("connect()"))?;
                Ok(Self::Unix(socket))
            }
        }
    }
}

impl Target {
    /// Appends what a message begins with: `<PRI>Mon dd hh:mm:ss host tag: `.
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
