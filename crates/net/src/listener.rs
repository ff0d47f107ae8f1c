//! A listening socket of one worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::Stream;

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

/// Opens a listening TCP socket for one worker.
pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<OwnedFd> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}
