//! A listening socket of one worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A listening socket.
pub struct Listener {
    fd: AsyncFd<OwnedFd>,
}

impl Listener {
    /// Takes a bound, listening, non-blocking socket.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: the `OwnedFd` stays open and unchanged inside the `AsyncFd` until both go.
        Ok(Self { fd: unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }? })
    }

    /// The next connection, and who it is; `None` on Unix sockets. Errors of the connection itself
    /// (aborted and the like) are passed over.
    pub async fn accept(&self) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            let mut ready = self.fd.readable().await?;
            match rustix::net::acceptfrom_with(self.fd.as_fd(), flags) {
                Ok((fd, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    return Ok((fd, peer));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
