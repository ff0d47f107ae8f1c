//! A connection that `pass` hands to another listening socket of this program.

use metrics::OpenConnection;
use net::{Address, ConnectionPermit, Stream};

use crate::Client;

/// A connection that is being handed over.
pub struct PassedConnection {
    /// The client, as one of the socket that it is passed to.
    pub client: Client,
    /// Its bytes.
    pub stream: Stream,
    /// The bytes already read.
    pub received: Vec<u8>,
    /// Counts it among the open ones.
    pub open: OpenConnection,
    /// Its place among the worker's connections.
    pub permit: ConnectionPermit,
}

/// The listening sockets of all subsystems.
pub trait PassTargets {
    /// The slot of the one that gets connections to this address.
    fn slot_at(&self, to: &Address) -> Option<u32>;
    /// Serves the connection as if the socket of its slot had accepted it.
    fn take_over(&self, passed: PassedConnection);
}
