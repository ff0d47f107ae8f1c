//! What a connection becomes after a reply that ends HTTP on it: bytes both ways, whatever they
//! mean.
//!
//! Who answers leaves a tunnel with the reply; the driver, once the head is sent, gives it the
//! client's end and lets it run. So the driver knows nothing of the other end, nor the tunnel of
//! the client's protocol.

use std::io;
use std::task::{Context, Poll};

/// Copies between the client and somebody else.
pub trait Tunnel {
    /// Copies what there is to copy. Ready once it is over.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn TunnelEnd,
    ) -> Poll<Result<(), TunnelError>>;
}

/// An end of a tunnel.
pub trait TunnelEnd {
    /// Reads what is there into the buffer's spare room, which must not be empty. 0 is the end.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>>;

    /// Writes as much as there is room for.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
}

/// Why a tunnel broke.
#[derive(Debug)]
pub enum TunnelError {
    /// This call failed on the client's side.
    Client(&'static str, io::Error),
    /// This call failed on the other side.
    Upstream(&'static str, io::Error),
    /// The other side was silent for too long, or took nothing.
    UpstreamTimedOut,
}
