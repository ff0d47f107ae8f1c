//! Where a socket listens, and how it is to be opened.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use socket2::{SockRef, Type};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// TCP, or a peer of either protocol.
    Ip(SocketAddr),
    /// UDP: another port space than TCP's.
    Udp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// The address that a socket has been bound to.
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

    /// The port, where it has one.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Ip(ip) | Self::Udp(ip) => Some(ip.port()),
            Self::Unix(_) => None,
        }
    }

    /// Whether it is one of UDP.
    pub fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Whether it stands for every address of the machine.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Ip(ip) | Self::Udp(ip) if ip.ip().is_unspecified())
    }

    /// Whether it stands for every address of the machine, and this is one of them with its port.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip(own), Self::Ip(other)) => {
                let is_same_family = own.is_ipv4() == other.is_ipv4();
                own.ip().is_unspecified() && is_same_family && own.port() == other.port()
            }
            _ => false,
        }
    }

    /// Takes the file of a Unix socket away.
    pub fn unlink(&self) -> io::Result<()> {
        match self {
            Self::Ip(_) | Self::Udp(_) => Ok(()),
            Self::Unix(path) => std::fs::remove_file(path),
        }
    }
}

/// `127.0.0.1:80`, `[::]:80`, `unix:/run/x.sock`: nginx's notation.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) | Self::Udp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What `listen` says about a socket beyond its address; `None` leaves it to the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Length of the queue of connections not yet accepted.
    pub backlog: i32,
    /// Receive buffer in bytes.
    pub rcvbuf: Option<usize>,
    /// Send buffer in bytes.
    pub sndbuf: Option<usize>,
    /// Accept only once the client has sent something.
    pub deferred: bool,
    /// Queue length for TCP Fast Open.
    pub fastopen: Option<i32>,
    /// Whether an IPv6 socket leaves IPv4 alone.
    pub ipv6only: bool,
    /// TCP keepalive probes.
    pub so_keepalive: Option<KeepaliveProbes>,
    /// Multipath TCP.
    pub multipath: bool,
}

/// `so_keepalive=`: off, or on with what it says of the intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveProbes {
    /// Whether probes are sent.
    pub on: bool,
    /// Seconds of silence before the first probe.
    pub idle_s: Option<u32>,
    /// Seconds between probes.
    pub interval_s: Option<u32>,
    /// Probes before the connection is given up.
    pub count: Option<u32>,
}

/// nginx's length of the accept queue on Linux.
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
