//! Integers and lengths (RFC 7541, 5.1), and reading a block piece by piece.

use alloc::vec::Vec;

use super::HpackError;

/// Bytes after the prefix. Four hold 28 bits, more than any length or index may have.
const CONTINUATION_BYTES_MAX: u32 = 4;

/// The rest of a block.
pub(super) struct BlockReader<'a>(pub(super) &'a [u8]);

impl<'a> BlockReader<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// An integer in the lower `prefix_bits` of the next byte, and in the bytes after it.
    #[inline]
    pub(super) fn integer(&mut self, prefix_bits: u8) -> Result<usize, HpackError> {
        let (&first, rest) = self.0.split_first().ok_or(HpackError::Truncated)?;
        let prefix_max = u8::MAX >> (8 - prefix_bits);
        self.0 = rest;
        match first & prefix_max {
            value if value < prefix_max => Ok(usize::from(value)),
            _ => self.continuation(prefix_max),
        }
    }

    fn continuation(&mut self, prefix_max: u8) -> Result<usize, HpackError> {
        let mut value = usize::from(prefix_max);
        for count in 0..CONTINUATION_BYTES_MAX {
            let (&byte, rest) = self.0.split_first().ok_or(HpackError::Truncated)?;
            self.0 = rest;
            value += usize::from(byte & 0x7f) << (7 * count);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(HpackError::IntegerTooLong)
    }

    /// A string's bytes, and whether they are in Huffman code.
    #[inline]
    pub(super) fn string(&mut self) -> Result<(&'a [u8], bool), HpackError> {
        let is_huffman = self.peek().ok_or(HpackError::Truncated)? & 0x80 != 0;
        let len = self.integer(7)?;
        let (text, rest) = self.0.split_at_checked(len).ok_or(HpackError::Truncated)?;
        self.0 = rest;
        Ok((text, is_huffman))
    }
}

/// Appends `value` with a prefix of `prefix_bits`, whose byte begins with `pattern`.
#[inline]
pub(super) fn write(pattern: u8, prefix_bits: u8, value: usize, out: &mut Vec<u8>) {
    let prefix_max = usize::from(u8::MAX >> (8 - prefix_bits));
    if value < prefix_max {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}
