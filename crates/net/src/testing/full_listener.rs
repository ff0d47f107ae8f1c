//! A server that does not accept connections.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::SockRef;

/// Maximum time of a successful connection attempt.
const CONNECTED_MAX: Duration = Duration::from_millis(100);
/// More connections than the kernel queues without a backlog.
const QUEUED_MAX: usize = 8;

/// A listening socket whose queue is full: a further connection is neither accepted nor refused.
pub struct FullListener {
    pub address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl FullListener {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        SockRef::from(&listener).listen(0).expect("a shorter queue");
        let address = listener.local_addr().expect("an address");
        let queued: Vec<_> = (0..QUEUED_MAX)
            .map_while(|_| TcpStream::connect_timeout(&address, CONNECTED_MAX).ok())
            .collect();
        assert!(queued.len() < QUEUED_MAX, "a queue without an end");
        Self { address, _listener: listener, _queued: queued }
    }
}

impl Default for FullListener {
    fn default() -> Self {
        Self::new()
    }
}
