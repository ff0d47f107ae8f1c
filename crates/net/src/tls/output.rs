//! Sealed records to be written to the socket.

use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::mem;

use rustls::unbuffered::{EncodeError, EncryptError, InsufficientSizeError};

use super::record::{ContentType, OVERHEAD_MAX, PLAINTEXT_MAX, RecordFault, RecordKey};

/// Number of full records that are sealed before a write to the socket.
const RECORDS_AT_ONCE: usize = 4;
/// Bytes in a buffer of sealed records.
const OUTPUT_SIZE: usize = RECORDS_AT_ONCE * (PLAINTEXT_MAX + OVERHEAD_MAX);
/// Free buffers that a worker keeps.
const KEPT_MAX: usize = 16;
/// Maximum number of pieces of plaintext in one record.
const PIECES_MAX: usize = 16;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes to be written to the socket. Without bytes it holds no buffer.
#[derive(Default)]
pub(crate) struct TlsOutput {
    /// Its length is its capacity, so that no memory is cleared before it is overwritten.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl TlsOutput {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether more than data is waiting: the peer causes answers and does not read them.
    pub(crate) fn is_overfull(&self) -> bool {
        self.end > OUTPUT_SIZE
    }

    /// Appends one record.
    pub(crate) fn seal(
        &mut self,
        key: &mut RecordKey,
        kind: ContentType,
        plaintext: &[&[u8]],
    ) -> Result<(), RecordFault> {
        let length = plaintext.iter().map(|piece| piece.len()).sum::<usize>();
        self.reserve(length + OVERHEAD_MAX);
        self.end += key.seal(kind, plaintext, &mut self.bytes[self.end..])?;
        Ok(())
    }

    /// Appends as few records as possible for these bytes, as long as there is room. Returns the
    /// number of bytes taken.
    pub(crate) fn seal_data(
        &mut self,
        key: &mut RecordKey,
        slices: &[IoSlice<'_>],
        record_max: usize,
    ) -> Result<usize, RecordFault> {
        self.reserve(1 + OVERHEAD_MAX);
        let mut rest = PlaintextSlices { slices, offset: 0 };
        let mut taken = 0;
        loop {
            let room = (self.bytes.len() - self.end).saturating_sub(OVERHEAD_MAX);
            let mut pieces = [&[][..]; PIECES_MAX];
            let (count, length) = rest.take(record_max.min(room), &mut pieces);
            if length == 0 {
                return Ok(taken);
            }
            let kind = ContentType::APPLICATION_DATA;
            self.end += key.seal(kind, &pieces[..count], &mut self.bytes[self.end..])?;
            taken += length;
        }
    }

    /// Appends the output of rustls, and returns it.
    pub(crate) fn append_with<E: NeedsRoom>(
        &mut self,
        mut encode: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> &[u8] {
        self.reserve(1);
        let start = self.end;
        loop {
            match encode(&mut self.bytes[start..]).map_err(|error| error.needed()) {
                Ok(count) => {
                    self.end += count;
                    return &self.bytes[start..self.end];
                }
                Err(Some(needed)) => self.reserve(needed),
                Err(None) => return &[],
            }
        }
    }

    /// Makes one write to the socket.
    pub(crate) fn flush(&mut self, socket: &mut dyn Write) -> io::Result<usize> {
        let written = socket.write(&self.bytes[self.start..self.end])?;
        self.start += written;
        if self.is_empty() {
            self.release();
        }
        Ok(written)
    }

    fn reserve(&mut self, count: usize) {
        if self.bytes.is_empty() {
            let free = FREE.with_borrow_mut(Vec::pop);
            self.bytes = free.unwrap_or_else(|| vec![0; OUTPUT_SIZE]);
        }
        if self.bytes.len() - self.end < count {
            self.bytes.resize(self.end + count, 0);
        }
    }

    fn release(&mut self) {
        (self.start, self.end) = (0, 0);
        let bytes = mem::take(&mut self.bytes);
        if bytes.len() != OUTPUT_SIZE {
            return;
        }
        // Nothing is kept when the thread ends.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT_MAX {
                free.push(bytes);
            }
        });
    }
}

/// Why rustls does not encode.
pub(crate) trait NeedsRoom {
    /// The room that it needs in bytes; `None`: there is nothing to encode.
    fn needed(&self) -> Option<usize>;
}

impl NeedsRoom for EncodeError {
    fn needed(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size }) => Some(*required_size),
            Self::AlreadyEncoded => None,
        }
    }
}

impl NeedsRoom for EncryptError {
    fn needed(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size }) => Some(*required_size),
            Self::EncryptExhausted => None,
        }
    }
}

impl Drop for TlsOutput {
    fn drop(&mut self) {
        self.release();
    }
}

/// The rest of the plaintext.
struct PlaintextSlices<'p> {
    slices: &'p [IoSlice<'p>],
    /// Bytes of the first slice that were taken.
    offset: usize,
}

impl<'p> PlaintextSlices<'p> {
    /// Takes up to `most` bytes. Returns the numbers of pieces and of bytes.
    fn take(&mut self, most: usize, pieces: &mut [&'p [u8]; PIECES_MAX]) -> (usize, usize) {
        let (mut count, mut length) = (0, 0);
        while let [first, rest @ ..] = self.slices
            && length < most
            && count < PIECES_MAX
        {
            let left = &first[self.offset..];
            let piece = &left[..left.len().min(most - length)];
            if !piece.is_empty() {
                pieces[count] = piece;
                count += 1;
                length += piece.len();
            }
            self.offset += piece.len();
            if self.offset == first.len() {
                (self.slices, self.offset) = (rest, 0);
            }
        }
        (count, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_is_cut_into_pieces_of_the_maximum_size() {
        let slices = [&b""[..], b"head", b"", b"body and more"].map(IoSlice::new);
        let mut rest = PlaintextSlices { slices: &slices, offset: 0 };
        let mut taken = Vec::new();
        loop {
            let mut pieces = [&[][..]; PIECES_MAX];
            let (count, length) = rest.take(6, &mut pieces);
            if length == 0 {
                break;
            }
            taken.push(pieces[..count].concat());
        }
        assert_eq!(taken, [&b"headbo"[..], b"dy and", b" more"]);
    }
}
