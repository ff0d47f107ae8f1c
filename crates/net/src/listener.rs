//! A listening socket of one worker.
//!
//! All connections in the kernel's queue are accepted in one turn of the event loop. To call
//! accept4(2) until it finds none would be the plain way, but that last call is expensive: the
//! kernel prepares a file and a socket before it looks into the queue (3 us on a machine where
//! poll(2) takes 0.2 us and a whole connection 20 us). So after each connection poll(2) says
//! whether there is another.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::time::Timespec;

use crate::event_loop::{Interest, Watched};

/// A connection from the kernel, and its client's address; `None` on Unix sockets.
pub type AcceptedSocket = (OwnedFd, Option<SocketAddr>);

pub struct Listener {
    fd: Watched,
    /// Whether the last call accepted a connection; if not, an event has told of the next.
    has_accepted: Cell<bool>,
}

impl Listener {
    /// Takes a bound, listening, non-blocking socket.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Watched::new(fd, Interest::Read)?, has_accepted: Cell::new(false) })
    }

    /// Waits for the next connection. Errors of a single connection, such as "aborted", are
    /// skipped.
    pub async fn accept(&self) -> io::Result<AcceptedSocket> {
        loop {
            match self.fd.read(|fd| self.take(fd)).await {
                Err(Errno::CONNABORTED | Errno::PROTO) => {}
                accepted => return Ok(accepted?),
            }
        }
    }

    fn take(&self, fd: &OwnedFd) -> Result<AcceptedSocket, Errno> {
        let taken = match self.has_accepted.get() && is_queue_empty(fd) {
            true => Err(Errno::AGAIN),
            false => accept(fd),
        };
        self.has_accepted.set(taken.is_ok());
        taken
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

fn is_queue_empty(fd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)) == Ok(0)
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
    fn connections_are_accepted_until_the_queue_is_empty_and_when_more_arrive() {
        crate::run(async {
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let address = socket.local_addr().unwrap();
            let listener = Listener::new(socket.into()).unwrap();
            for count in [2, 1, 3] {
                let clients: Vec<_> =
                    (0..count).map(|_| TcpStream::connect(address).unwrap()).collect();
                for client in &clients {
                    let (_, peer) = listener.accept().await.unwrap();
                    assert_eq!(peer, Some(client.local_addr().unwrap()));
                }
            }
        })
        .unwrap();
    }

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
