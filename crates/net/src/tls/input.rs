//! Received bytes of a session: the last opened record, then records that wait. Without bytes it
//! holds no buffer.

use std::io;
use std::mem;
use std::ops::Range;

use super::record::RECORD_MAX;
use crate::{SessionInput, buffers};

/// Maximum number of bytes of an incomplete handshake message. rustls accepts no longer message.
pub(super) const HANDSHAKE_MAX: usize = 0xffff + RECORD_MAX;
/// Minimum room for a read.
const READ_MIN: usize = 4096;

#[derive(Default)]
pub(super) struct TlsInput {
    pub(super) bytes: Vec<u8>,
    /// Plaintext in the last opened record.
    pub(super) plain: Range<usize>,
    /// Start of the records that are not opened.
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

    /// Makes room for a read: moves the rest to the front, and grows during a handshake with
    /// messages longer than a buffer.
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

    /// Returns the buffer if it is empty.
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
