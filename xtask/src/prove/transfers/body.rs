//! A body whose every byte is known: a long block of noise, over and over.

use std::io::{self, Read, Write};

/// Not a power of two, so that data at a wrong offset differs.
const BLOCK_BYTES: usize = 1_000_003;

#[derive(Clone)]
pub(super) struct TransferBody {
    block: Vec<u8>,
    pub(super) length: usize,
}

impl TransferBody {
    pub(super) fn new(stream: usize, length: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(stream as u64 + 1);
        let block = (0..BLOCK_BYTES).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        Self { block: block.collect(), length }
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut rest = self.length;
        while rest > 0 {
            let count = rest.min(self.block.len());
            to.write_all(&self.block[..count])?;
            rest -= count;
        }
        Ok(())
    }

    /// Reads `length` bytes and compares all of them; `after` is told of each piece.
    pub(super) fn check(&self, from: &mut impl Read, after: impl Fn(usize)) -> io::Result<()> {
        let mut buffer = vec![0; 65_536];
        let mut at = 0;
        while at < self.length {
            let begin = at % self.block.len();
            let most = buffer.len().min(self.block.len() - begin).min(self.length - at);
            let count = from.read(&mut buffer[..most])?;
            if count == 0 {
                return Err(io::Error::other(format!("{at} bytes instead of {}", self.length)));
            }
            if buffer[..count] != self.block[begin..begin + count] {
                return Err(io::Error::other(format!("wrong data after {at} bytes")));
            }
            at += count;
            after(count);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_and_a_missing_end_are_found() {
        let body = TransferBody::new(1, BLOCK_BYTES + 10);
        let mut bytes = Vec::new();
        body.write(&mut bytes).unwrap();
        assert!(body.check(&mut &bytes[..], |_| {}).is_ok());
        assert!(body.check(&mut &bytes[..BLOCK_BYTES], |_| {}).is_err());
        assert!(TransferBody::new(2, 100).check(&mut &bytes[..], |_| {}).is_err());
        bytes[BLOCK_BYTES + 5] ^= 1;
        assert!(body.check(&mut &bytes[..], |_| {}).is_err());
    }
}
