//! A listening socket of one worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use socket2::{SockAddr, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{Address, SocketOptions, Stream};

/// A listening socket.
pub struct Listener {
    fd: AsyncFd<OwnedFd>,
}

/// A new connection.
pub struct Accepted {
    /// The socket.
    pub stream: Stream,
    /// Who connected; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
}

impl Listener {
    /// Takes a bound, listening, non-blocking socket.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: the `OwnedFd` stays open and unchanged inside the `AsyncFd` until both go.
        Ok(Self { fd: unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }? })
    }

    /// The next connection. Errors of the connection itself (aborted and the like) are passed over.
    pub async fn accept(&self) -> io::Result<Accepted> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            let mut ready = self.fd.readable().await?;
            match rustix::net::acceptfrom_with(self.fd.as_fd(), flags) {
                Ok((fd, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    return Ok(Accepted { stream: Stream::new(fd), peer });
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Opens a listening socket for one worker.
pub fn listen(address: &Address, options: &SocketOptions) -> io::Result<OwnedFd> {
    let at = match address {
        Address::Ip(at) => SockAddr::from(*at),
        Address::Unix(path) => SockAddr::unix(path)?,
    };
    let socket = Socket::new(at.domain(), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if let Address::Ip(ip) = address {
        socket.set_reuse_port(true)?;
        if ip.is_ipv6() {
            socket.set_only_v6(options.ipv6only)?;
        }
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at)?;
    if matches!(address, Address::Ip(_)) && options.deferred {
        set_tcp(&socket, libc::TCP_DEFER_ACCEPT, 1)?;
    }
    socket.listen(options.backlog)?;
    Ok(socket.into())
}

/// An option of the TCP protocol that has no safe wrapper.
fn set_tcp(socket: &Socket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and the size are those of `value`, which outlives the call.
    let done = unsafe {
        let pointer = (&raw const value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, pointer, size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
