//! A listening socket of one worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::event_loop::{Interest, Watched};

/// A listening socket.
pub struct Listener {
    fd: Watched,
}

impl Listener {
    /// Takes a bound, listening, non-blocking socket.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Watched::new(fd, Interest::Read)? })
    }

    /// The next connection, and who it is; `None` on Unix sockets. Errors of the connection itself
    /// (aborted and the like) are passed over.
    pub async fn accept(&self) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            match self.fd.read(|fd| rustix::net::acceptfrom_with(fd, flags)).await {
                Ok((fd, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    return Ok((fd, peer));
                }
                Err(Errno::CONNABORTED | Errno::PROTO) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
