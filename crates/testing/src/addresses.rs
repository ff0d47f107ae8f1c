//! Addresses of this process, and connections to them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::PATIENCE;

/// A free address that no other test chooses. Nothing listens there until the test does.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, high | 1, low, NEXT.fetch_add(1, Ordering::Relaxed));
    TcpListener::bind((host, 0)).unwrap().local_addr().unwrap()
}

/// A connection whose operations time out.
pub fn connect(address: &SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(address, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Both ends of a TCP connection: the client's and the server's.
pub fn connected_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn a_free_address_refuses_connections_until_it_is_bound() {
    let (address, other) = (free_address(), free_address());
    assert_ne!(address.ip(), other.ip());
    assert!(TcpStream::connect(address).is_err());
    let _listener = TcpListener::bind(address).unwrap();
    assert!(TcpStream::connect(address).is_ok());
}
