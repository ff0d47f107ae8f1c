//! Who is on the other end of a connection.

use std::cell::Cell;
use std::net::SocketAddr;

/// A connection as its exchanges see it.
pub struct Client {
    /// The number that log lines carry after `*`.
    pub serial: u64,
    /// The client's address; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
    /// The address it connected to; `None` on Unix sockets.
    pub local: Option<SocketAddr>,
    /// The listening socket it came by.
    pub listen: u32,
    /// Requests so far, the present one included.
    pub requests: Cell<u64>,
    /// When it was accepted, by the worker's clock.
    pub accepted_ms: u64,
}
