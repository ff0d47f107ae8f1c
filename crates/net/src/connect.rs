//! Connections that this side opens.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::accept::Transport;
use crate::{Address, Stream};

#[derive(Clone, Debug, Default)]
pub struct Connect {
    /// The local address; its port may be 0.
    pub from: Option<SocketAddr>,
    /// Whether the local address may be one that this machine does not have.
    pub transparent: bool,
    /// Receive buffer in bytes.
    pub rcvbuf: Option<usize>,
    /// Send buffer in bytes.
    pub sndbuf: Option<usize>,
    /// Whether the kernel sends keepalive probes.
    pub keepalive: bool,
    /// Secures the connection.
    pub transport: Option<Arc<dyn Transport>>,
}

/// A connection being opened.
pub struct Connecting {
    stream: Option<Stream>,
    under_way: bool,
    /// Secures the connection once it is established.
    transport: Option<Arc<dyn Transport>>,
}

impl Connect {
    /// Begins to open a connection. An error comes with the name of the call.
    pub fn begin(&self, to: &Address) -> Result<Connecting, (&'static str, io::Error)> {
        let (socket, under_way) = self.socket(to, Type::STREAM)?;
        // A connection to this machine is usually established when `connect` returns.
        let is_near = matches!(to, Address::Ip(ip) if ip.ip().is_loopback());
        let under_way = under_way && !(is_near && stands(&socket));
        let (stream, transport) = (Some(Stream::new(socket.into())), self.transport.clone());
        Ok(Connecting { stream, under_way, transport })
    }

    /// Begins to open a connection without waiting: bytes written are sent once it is established,
    /// or fail with it.
    pub fn begin_stream(&self, to: &Address) -> Result<Stream, (&'static str, io::Error)> {
        Ok(Stream::new(self.socket(to, Type::STREAM)?.0.into()))
    }

    /// A UDP socket, or a Unix datagram socket, connected to `to`. An error comes with the name of
    /// the call.
    pub fn datagram(&self, to: &Address) -> Result<OwnedFd, (&'static str, io::Error)> {
        let without_probes = Self { keepalive: false, ..self.clone() };
        let (socket, _) = without_probes.socket(to, Type::DGRAM)?;
        Ok(socket.into())
    }

    /// A connecting socket, and whether it is still connecting.
    fn socket(
        &self,
        to: &Address,
        kind: Type,
    ) -> Result<(Socket, bool), (&'static str, io::Error)> {
        let (domain, address) = match to {
            Address::Ip(ip) | Address::Udp(ip) => (Domain::for_address(*ip), SockAddr::from(*ip)),
            Address::Unix(path) => {
                (Domain::UNIX, SockAddr::unix(path).map_err(|error| ("connect()", error))?)
            }
        };
        let socket = Socket::new(domain, kind.nonblocking().cloexec(), None)
            .map_err(|error| ("socket()", error))?;
        self.prepare(&socket, domain)?;
        match socket.connect(&address) {
            Ok(()) => Ok((socket, false)),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok((socket, true)),
            Err(error) => Err(("connect()", error)),
        }
    }

    fn prepare(&self, socket: &Socket, domain: Domain) -> Result<(), (&'static str, io::Error)> {
        const SET: &str = "setsockopt()";
        if let Some(bytes) = self.rcvbuf {
            socket.set_recv_buffer_size(bytes).map_err(|error| (SET, error))?;
        }
        if let Some(bytes) = self.sndbuf {
            socket.set_send_buffer_size(bytes).map_err(|error| (SET, error))?;
        }
        if self.keepalive {
            socket.set_keepalive(true).map_err(|error| (SET, error))?;
        }
        let Some(from) = self.from.filter(|from| Domain::for_address(*from) == domain) else {
            return Ok(());
        };
        if self.transparent {
            set_transparent(socket, domain).map_err(|error| (SET, error))?;
        }
        if from.port() == 0 {
            // The port is chosen once both addresses are known, so ports can be shared by
            // connections to different servers.
            set_no_port(socket);
        }
        socket.bind(&from.into()).map_err(|error| ("bind()", error))
    }
}

impl Connecting {
    /// Whether the connection is established and its handshake has begun.
    pub fn is_securing(&self) -> bool {
        !self.under_way && self.transport.is_none()
    }

    /// Ready once the connection is established and its handshake is done, or either has failed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        let stream = self.stream.as_mut().expect("polled until ready");
        if self.under_way {
            ready!(stream.poll_writable(cx))?;
            if let Some(error) = socket2::SockRef::from(&stream.as_fd()).take_error()? {
                return Poll::Ready(Err(error));
            }
            self.under_way = false;
        }
        if let Some(transport) = self.transport.take() {
            stream.secure(transport.session(&[])?);
        }
        ready!(stream.poll_handshake(cx))?;
        Poll::Ready(Ok(self.stream.take().expect("still there")))
    }
}

/// Whether the connection is already established, without an error.
fn stands(socket: &Socket) -> bool {
    let mut asked = [PollFd::new(socket, PollFlags::OUT)];
    let answered = rustix::event::poll(&mut asked, Some(&Timespec::default()));
    answered == Ok(1) && asked[0].revents() == PollFlags::OUT
}

fn set_transparent(socket: &Socket, domain: Domain) -> io::Result<()> {
    let (level, name) = match domain {
        Domain::IPV6 => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
        _ => (libc::SOL_IP, libc::IP_TRANSPARENT),
    };
    set_flag(socket, level, name)
}

fn set_no_port(socket: &Socket) {
    // Old kernels do not have the option, which is only an optimisation.
    let _ = set_flag(socket, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT);
}

fn set_flag(socket: &Socket, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one `c_int`, which lives through the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
