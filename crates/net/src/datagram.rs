//! Datagram sockets: connected to one peer, or open to all senders.
//!
//! The kernel drops other senders' datagrams to a connected socket, and reports a closed port of
//! the peer. Each socket gets its own local port from the kernel.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Socket, Type};

use crate::event_loop::{Interest, Watched};

/// A connected UDP socket.
pub struct Datagram {
    fd: Watched,
}

impl Datagram {
    /// Opens a socket. The error includes the name of the call.
    pub fn connect(peer: SocketAddr) -> Result<Self, (&'static str, io::Error)> {
        Self::connect_from(None, peer)
    }

    /// Opens a socket bound to an address of this machine; its port may be 0.
    pub fn connect_from(
        from: Option<SocketAddr>,
        peer: SocketAddr,
    ) -> Result<Self, (&'static str, io::Error)> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(peer), kind, None);
        let socket = socket.map_err(|error| ("socket()", error))?;
        if let Some(from) = from {
            socket.bind(&from.into()).map_err(|error| ("bind()", error))?;
        }
        socket.connect(&peer.into()).map_err(|error| ("connect()", error))?;
        Self::of(socket.into()).map_err(|error| ("epoll_ctl()", error))
    }

    /// Takes a connected, non-blocking socket.
    pub fn of(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Watched::new(fd, Interest::Read)? })
    }

    /// Sends a datagram at once. A full socket is an error, since datagrams may get lost anyway.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        rustix::net::send(self.fd.get(), datagram, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the next datagram and returns its length. The rest of a datagram longer than the
    /// buffer is cut off.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let receive = |fd: &_| rustix::net::recv(fd, &mut *buffer, RecvFlags::empty());
        let (length, _) = self.fd.read(receive).await?;
        Ok(length)
    }
}

/// A bound UDP socket.
pub struct Datagrams {
    fd: Watched,
}

impl Datagrams {
    /// Opens and binds a socket, which a worker takes over later.
    pub fn bind(address: SocketAddr) -> io::Result<OwnedFd> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(address), kind, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        Ok(socket.into())
    }

    /// Takes a bound, non-blocking socket.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Watched::new(fd, Interest::Read)? })
    }

    /// Sends a datagram at once. A full socket is an error, since datagrams may get lost anyway.
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        rustix::net::sendto(self.fd.get(), datagram, SendFlags::NOSIGNAL, &to)?;
        Ok(())
    }

    /// Waits for the next datagram and returns its length and sender. The rest of a datagram longer
    /// than the buffer is cut off.
    pub async fn receive_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let receive = |fd: &_| rustix::net::recvfrom(fd, &mut *buffer, RecvFlags::empty());
        let (length, _, from) = self.fd.read(receive).await?;
        let from = from.and_then(|from| SocketAddr::try_from(from).ok());
        Ok((length, from.ok_or(Errno::AFNOSUPPORT)?))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::pin::pin;

    use super::*;

    fn within_a_worker(test: impl Future<Output = ()>) {
        const MAX: std::time::Duration = std::time::Duration::from_secs(10);
        crate::run(async {
            let (mut test, mut limit) = (pin!(test), pin!(crate::sleep(MAX)));
            poll_fn(|cx| {
                assert!(limit.as_mut().poll(cx).is_pending(), "in time");
                test.as_mut().poll(cx)
            })
            .await;
        })
        .unwrap();
    }

    #[test]
    fn a_connected_socket_receives_only_from_its_peer() {
        let (peer, other) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        within_a_worker(async {
            let datagram = Datagram::connect(peer.local_addr().unwrap()).unwrap();
            datagram.send(b"hello").unwrap();
            let mut buffer = [0; 8];
            let (length, from) = peer.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"hello");
            other.send_to(b"spoof", from).unwrap();
            peer.send_to(b"answered at length", from).unwrap();
            let length = datagram.receive(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], b"answered");
        });
    }

    #[test]
    fn a_closed_port_is_reported() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap();
        drop(peer);
        within_a_worker(async {
            let datagram = Datagram::connect(address).unwrap();
            datagram.send(b"hello").unwrap();
            let error = datagram.receive(&mut [0; 8]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        });
    }

    #[test]
    fn a_bound_socket_receives_from_all_senders() {
        let socket = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = crate::Address::of(socket.as_fd()).unwrap().to_string();
        let peers = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        within_a_worker(async {
            let datagrams = Datagrams::new(socket).unwrap();
            for peer in &peers {
                peer.send_to(b"hello", &address).unwrap();
                let mut buffer = [0; 8];
                let (length, from) = datagrams.receive_from(&mut buffer).await.unwrap();
                assert_eq!((&buffer[..length], from), (&b"hello"[..], peer.local_addr().unwrap()));
                datagrams.send_to(b"hi", from).unwrap();
                assert_eq!(peer.recv(&mut buffer).unwrap(), 2);
            }
        });
    }
}
