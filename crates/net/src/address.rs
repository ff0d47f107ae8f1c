//! Addresses and options of listening sockets.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use socket2::{SockRef, Type};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// TCP; the peer of a TCP or UDP socket.
    Ip(SocketAddr),
    /// UDP, whose ports are separate from TCP's.
    Udp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// The address that a socket is bound to.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let socket = SockRef::from(&socket);
        let name = socket.local_addr()?;
        match (name.as_socket(), name.as_pathname()) {
            (Some(ip), _) if socket.r#type()? == Type::DGRAM => Ok(Self::Udp(ip)),
            (Some(ip), _) => Ok(Self::Ip(ip)),
            (_, Some(path)) => Ok(Self::Unix(path.to_owned())),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Ip(ip) | Self::Udp(ip) => Some(ip.port()),
            Self::Unix(_) => None,
        }
    }

    pub fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Whether it means every address of the machine.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Ip(ip) | Self::Udp(ip) if ip.ip().is_unspecified())
    }

    /// Whether it means every address of the machine, and `other` is one of them with the same
    /// port.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip(own), Self::Ip(other)) => {
                let is_same_family = own.is_ipv4() == other.is_ipv4();
                own.ip().is_unspecified() && is_same_family && own.port() == other.port()
            }
            _ => false,
        }
    }

    /// Removes the file of a Unix socket.
    pub fn unlink(&self) -> io::Result<()> {
        match self {
            Self::Ip(_) | Self::Udp(_) => Ok(()),
            Self::Unix(path) => std::fs::remove_file(path),
        }
    }
}

/// nginx's notation: `127.0.0.1:80`, `[::]:80`, `unix:/run/x.sock`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) | Self::Udp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The parameters of `listen` for a socket; `None` is the system's default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Length of the queue of connections not yet accepted.
    pub backlog: i32,
    /// Receive buffer in bytes.
    pub rcvbuf: Option<usize>,
    /// Send buffer in bytes.
    pub sndbuf: Option<usize>,
    /// Accept a connection only once its first bytes have arrived.
    pub deferred: bool,
    /// Queue length for TCP Fast Open.
    pub fastopen: Option<i32>,
    /// Whether an IPv6 socket does not accept IPv4.
    pub ipv6only: bool,
    pub so_keepalive: Option<KeepaliveProbes>,
    /// Multipath TCP.
    pub multipath: bool,
}

/// `so_keepalive=`: off, or on with optional intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveProbes {
    /// Whether probes are sent.
    pub on: bool,
    /// Seconds of silence before the first probe.
    pub idle_s: Option<u32>,
    /// Seconds between probes.
    pub interval_s: Option<u32>,
    /// Unanswered probes before the connection is closed.
    pub count: Option<u32>,
}

/// nginx's `backlog` on Linux.
pub const BACKLOG: i32 = 511;

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            backlog: BACKLOG,
            rcvbuf: None,
            sndbuf: None,
            deferred: false,
            fastopen: None,
            ipv6only: true,
            so_keepalive: None,
            multipath: false,
        }
    }
}
