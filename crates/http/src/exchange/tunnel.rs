//! A connection after a reply that ends HTTP on it: bytes are copied both ways.
//!
//! The handler puts a tunnel into the reply; once the head is sent, the driver runs it with the
//! client's end. The driver knows nothing of the other end, and the tunnel nothing of the client's
//! protocol.

use std::io;
use std::task::{Context, Poll};

/// Copies between the client and another end.
pub trait Tunnel {
    /// Copies available bytes. Ready at the end of the tunnel.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn TunnelEnd,
    ) -> Poll<Result<(), TunnelError>>;
}

pub trait TunnelEnd {
    /// Reads into the buffer's spare capacity, which must not be empty. 0 is the end.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>>;

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
}

#[derive(Debug)]
pub enum TunnelError {
    /// This call failed on the client's side.
    Client(&'static str, io::Error),
    /// This call failed on the other side.
    Upstream(&'static str, io::Error),
    /// The other side sent or took nothing for too long.
    UpstreamTimedOut,
}
