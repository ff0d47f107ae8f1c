//! What a protocol under a stream, such as TLS, has to offer.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use super::session_input::SessionInput;
use crate::tls::TlsDetails;

/// A session between the user of a stream and its socket. It does no I/O of its own: the stream
/// hands it the socket, which fails with `WouldBlock` where it is not ready.
pub trait SecureSession: Send {
    /// Whether keys are still being agreed on.
    fn is_handshaking(&self) -> bool;

    /// Whether plaintext is exchanged although the other end's part of the handshake is still to
    /// come.
    fn is_early(&self) -> bool {
        false
    }

    /// Goes on with what was received before there was a session.
    fn proceed(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Reads once, and makes plaintext of it as far as it is complete. 0 is the end. Called only
    /// while there is no plaintext, so there is never more of it than one read brings.
    fn receive(&mut self, socket: &mut SessionInput<'_>) -> io::Result<usize>;

    /// Whether plaintext waits to be taken.
    fn has_plaintext(&self) -> bool;

    /// Moves up to `most` bytes of plaintext to the buffer's end. How many; 0 where there is none.
    fn take_plaintext(&mut self, buffer: &mut Vec<u8>, most: usize) -> usize;

    /// Whether the other end has said that nothing more comes (close_notify), and all that came
    /// before was taken.
    fn is_ended(&self) -> bool;

    /// Asked at the end of what comes: whether the other end has not said so. Somebody else may
    /// have cut off the rest.
    fn is_cut(&self) -> bool {
        !self.is_ended()
    }

    /// Takes plaintext to send. How much; nothing only where there was nothing. Called only while
    /// there is nothing to [flush](Self::flush).
    fn send(&mut self, plaintext: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Says that nothing more will be sent (close_notify). May be called again.
    fn close(&mut self);

    /// Whether bytes wait for the socket.
    fn wants_flush(&self) -> bool;

    /// Writes once what waits for the socket.
    fn flush(&mut self, socket: &mut dyn Write) -> io::Result<usize>;

    /// What was agreed on, once it was; `None`: there is nothing to say of it.
    fn details(&self) -> Option<&Arc<TlsDetails>> {
        None
    }
}
