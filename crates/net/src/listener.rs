//! A listening socket of one worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::event_loop::{Interest, Watched};

/// A connection from the kernel, and its client's address; `None` on Unix sockets.
pub type AcceptedSocket = (OwnedFd, Option<SocketAddr>);

pub struct Listener {
    fd: Watched,
}

impl Listener {
    /// Takes a bound, listening, non-blocking socket.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Watched::new(fd, Interest::Read)? })
    }

    /// Waits for the next connection. Errors of a single connection, such as "aborted", are
    /// skipped.
    pub async fn accept(&self) -> io::Result<AcceptedSocket> {
        loop {
            match self.fd.read(accept).await {
                Err(Errno::CONNABORTED | Errno::PROTO) => {}
                accepted => return Ok(accepted?),
            }
        }
    }

    /// The next connection in the kernel's queue, if there is one.
    pub fn accept_queued(&self) -> Option<AcceptedSocket> {
        loop {
            match accept(self.fd.get()) {
                Err(Errno::CONNABORTED | Errno::PROTO | Errno::INTR) => {}
                accepted => return accepted.ok(),
            }
        }
    }
}

fn accept(fd: &OwnedFd) -> Result<AcceptedSocket, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, peer) = rustix::net::acceptfrom_with(fd, flags)?;
    Ok((fd, peer.and_then(|peer| SocketAddr::try_from(peer).ok())))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn queued_connections_are_accepted_without_waiting() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let peers = crate::run(async {
            let listener = Listener::new(socket.into()).unwrap();
            assert!(listener.accept_queued().is_none());
            let clients = [(); 2].map(|()| TcpStream::connect(address).unwrap());
            let peers = std::iter::from_fn(|| listener.accept_queued()?.1).collect::<Vec<_>>();
            assert_eq!(peers, clients.map(|client| client.local_addr().unwrap()));
            peers.len()
        });
        assert_eq!(peers.unwrap(), 2);
    }
}
