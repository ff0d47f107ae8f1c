//! Received bytes of a session: a part that was opened, then records that wait. Without any, they
//! hold no buffer.

use std::io;
use std::mem;
use std::ops::Range;

use super::record::RECORD_MAX;
use crate::{SessionInput, buffers};

/// Handshake bytes of one flight that wait for the rest, at most. rustls takes no longer message.
pub(super) const HANDSHAKE_MAX: usize = 0xffff + RECORD_MAX;
/// Room for a read, at least.
const READ_MIN: usize = 4096;

#[derive(Default)]
pub(super) struct TlsInput {
    pub(super) bytes: Vec<u8>,
    /// Plaintext in the record that was opened last.
    pub(super) plain: Range<usize>,
    /// Where the records begin that nobody has looked at.
    pub(super) next: usize,
}

impl TlsInput {
    /// Reads from the socket and appends to the buffered bytes.
    pub(super) fn read(&mut self, socket: &mut SessionInput<'_>) -> io::Result<usize> {
        self.make_room()?;
        let read = socket.read_into(&mut self.bytes);
        if read.is_err() {
            self.release();
        }
        read
    }

    /// Makes room for more: moves what is left to the front, and grows during a handshake whose
    /// messages are longer than a buffer.
    fn make_room(&mut self) -> io::Result<()> {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers::lend_large();
        }
        if self.bytes.capacity() - self.bytes.len() < READ_MIN {
            self.bytes.drain(..self.next);
            self.next = 0;
            if self.bytes.len() > HANDSHAKE_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.bytes.reserve(READ_MIN);
        }
        Ok(())
    }

    /// Gives the buffer back if nothing is left in it.
    pub(super) fn release(&mut self) {
        if self.plain.is_empty() && self.next >= self.bytes.len() {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        buffers::give_back(mem::take(&mut self.bytes));
        (self.plain, self.next) = (0..0, 0);
    }
}
