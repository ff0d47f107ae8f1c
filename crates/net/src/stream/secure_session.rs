//! The interface of a protocol between a stream's user and its socket, such as TLS.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use super::session_input::SessionInput;
use crate::tls::TlsDetails;

/// A session between the user of a stream and its socket. It does no I/O of its own: the stream
/// passes it the socket, which fails with `WouldBlock` when it is not ready.
pub trait SecureSession: Send {
    /// Whether the handshake is not done.
    fn is_handshaking(&self) -> bool;

    /// Whether plaintext is exchanged although the peer's part of the handshake is still missing
    /// (early data).
    fn is_early(&self) -> bool {
        false
    }

    /// Processes the bytes received before the session was created.
    fn proceed(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Reads once, and decrypts complete records. 0 is the end. Called only while there is no
    /// plaintext, so plaintext is limited to that of one read.
    fn receive(&mut self, socket: &mut SessionInput<'_>) -> io::Result<usize>;

    /// Whether there is plaintext to take.
    fn has_plaintext(&self) -> bool;

    /// Appends up to `most` bytes of plaintext to the buffer. Returns their number.
    fn take_plaintext(&mut self, buffer: &mut Vec<u8>, most: usize) -> usize;

    /// Whether the peer has announced the end of its data (close_notify), and all plaintext was
    /// taken.
    fn is_ended(&self) -> bool;

    /// After the end of input: whether the peer did not announce it. An attacker may have cut off
    /// the rest.
    fn is_cut(&self) -> bool {
        !self.is_ended()
    }

    /// Accepts plaintext to send and returns its length, 0 only if there was none. Called only
    /// while there is nothing to [flush](Self::flush).
    fn send(&mut self, plaintext: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Announces the end of output (close_notify). May be called again.
    fn close(&mut self);

    /// Whether there are bytes to write to the socket.
    fn wants_flush(&self) -> bool;

    /// Makes one write to the socket.
    fn flush(&mut self, socket: &mut dyn Write) -> io::Result<usize>;

    /// Details of the handshake, once it is done; `None`: there are none.
    fn details(&self) -> Option<&Arc<TlsDetails>> {
        None
    }
}
