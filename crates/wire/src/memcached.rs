//! memcached's text protocol, limited to the needs of a web server: `get` for one key.
//!
//! ```text
//! get KEY CRLF -> VALUE KEY FLAGS LENGTH CRLF data CRLF END CRLF
//!              -> END CRLF
//! ```

use alloc::vec::Vec;

use memchr::memchr;

use crate::Slice;
use crate::uri::{EscapeSet, escape};

/// The bytes after the data of a value.
pub const TRAILER: &[u8] = b"\r\nEND\r\n";

/// Writes the request for a key. Returns the place of the escaped key in `out`.
pub fn get(key: &[u8], out: &mut Vec<u8>) -> Slice {
    out.extend_from_slice(b"get ");
    let start = out.len();
    escape(EscapeSet::Memcached, key, out);
    let key = Slice::new(start, out.len());
    out.extend_from_slice(b"\r\n");
    key
}

/// An answer of memcached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedAnswer {
    /// The key exists: its data and [`TRAILER`] follow.
    Value {
        /// The flags that the client stored with it; a number, unless the server is broken.
        flags: Slice,
        /// Bytes of data.
        length: u64,
        /// The offset of the data.
        head_bytes: usize,
    },
    /// The key does not exist.
    NotFound {
        /// Bytes of the answer.
        head_bytes: usize,
    },
}

/// The fault of an answer, with its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// It is not an answer.
    Invalid(Slice),
    /// It is for another key.
    Key(Slice),
    /// Its length is not a number.
    Length(Slice),
}

/// Reads the first line of an answer about the escaped `key`; `None` if it is incomplete.
pub fn answer(key: &[u8], input: &[u8]) -> Result<Option<MemcachedAnswer>, AnswerError> {
    let input = &input[..input.len().min(Slice::BUFFER_MAX)];
    let Some(lf) = memchr(b'\n', input) else { return Ok(None) };
    let Some(text) = input[..lf].strip_suffix(b"\r") else {
        return Err(AnswerError::Invalid(Slice::new(0, lf)));
    };
    let (line, head_bytes) = (Slice::new(0, text.len()), lf + 1);
    if text == b"END" {
        return Ok(Some(MemcachedAnswer::NotFound { head_bytes }));
    }
    let rest = text.strip_prefix(b"VALUE ").ok_or(AnswerError::Invalid(line))?;
    let rest = rest.strip_prefix(key).ok_or(AnswerError::Key(line))?;
    let rest = rest.strip_prefix(b" ").ok_or(AnswerError::Invalid(line))?;
    let space = memchr(b' ', rest).ok_or(AnswerError::Invalid(line))?;
    let start = text.len() - rest.len();
    let length = number(&rest[space + 1..]).ok_or(AnswerError::Length(line))?;
    let flags = Slice::new(start, start + space);
    Ok(Some(MemcachedAnswer::Value { flags, length, head_bytes }))
}

/// Reads a number in the form of flags and lengths.
pub fn number(text: &[u8]) -> Option<u64> {
    let digit = |number: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    let number = (!text.is_empty()).then(|| text.iter().try_fold(0, digit)).flatten()?;
    // nginx's numbers are signed.
    (number <= i64::MAX as u64).then_some(number)
}

/// Finds the end of a value: its data, then [`TRAILER`].
#[derive(Clone, Debug)]
pub struct ValueDecoder {
    data_left: u64,
    /// Bytes of the trailer received so far.
    trailer: usize,
}

/// The data is not followed by the trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTrailer;

impl ValueDecoder {
    /// A decoder for `length` bytes of data.
    pub fn new(length: u64) -> Self {
        Self { data_left: length, trailer: 0 }
    }

    /// Returns the number of data bytes at the start of `input`; the rest is the trailer, or part
    /// of it. `Err`: the same number, but the rest is not the trailer.
    pub fn decode(&mut self, input: &[u8]) -> Result<usize, (usize, InvalidTrailer)> {
        let data =
            usize::try_from(self.data_left).map_or(input.len(), |left| left.min(input.len()));
        self.data_left -= data as u64;
        let rest = &input[data..];
        if !TRAILER[self.trailer..].starts_with(rest) {
            return Err((data, InvalidTrailer));
        }
        self.trailer += rest.len();
        Ok(data)
    }

    /// The number of missing bytes of data.
    pub fn data_left(&self) -> u64 {
        self.data_left
    }

    /// Whether data and trailer are complete.
    pub fn is_done(&self) -> bool {
        self.data_left == 0 && self.trailer == TRAILER.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_escaped() {
        let mut out = Vec::new();
        let key = get(b"/a b%\x01", &mut out);
        assert_eq!(out, b"get /a%20b%25%01\r\n");
        assert_eq!(key.of(&out), b"/a%20b%25%01");
    }

    #[test]
    fn answers() {
        use AnswerError::{Invalid, Key, Length};
        let line = |end| Slice::new(0, end);
        let value = |flags: (usize, usize), length, head_bytes| {
            let flags = Slice::new(flags.0, flags.1);
            Ok(Some(MemcachedAnswer::Value { flags, length, head_bytes }))
        };
        let table = [
            (&b"VALUE /k 0 5\r\nhello"[..], value((9, 10), 5, 14)),
            (b"VALUE /k 123 0\r\n", value((9, 12), 0, 16)),
            (b"VALUE /k  7\r\n", value((9, 9), 7, 13)),
            (b"END\r\nmore", Ok(Some(MemcachedAnswer::NotFound { head_bytes: 5 }))),
            (b"END\n", Err(Invalid(line(3)))),
            (b"\n", Err(Invalid(line(0)))),
            (b"END \r\n", Err(Invalid(line(4)))),
            (b"ERROR\r\n", Err(Invalid(line(5)))),
            (b"VALUE /other 0 5\r\n", Err(Key(line(16)))),
            (b"VALUE /k2 0 5\r\n", Err(Invalid(line(13)))),
            (b"VALUE /k 0\r\n", Err(Invalid(line(10)))),
            (b"VALUE /k 0 \r\n", Err(Length(line(11)))),
            (b"VALUE /k 0 5x\r\n", Err(Length(line(13)))),
            (b"VALUE /k 0 9223372036854775808\r\n", Err(Length(line(30)))),
        ];
        for (input, expected) in table {
            assert_eq!(answer(b"/k", input), expected, "{}", input.escape_ascii());
            let lf = memchr(b'\n', input).unwrap();
            for end in 0..=lf {
                assert_eq!(answer(b"/k", &input[..end]), Ok(None));
            }
        }
    }

    #[test]
    fn a_value_ends_with_its_trailer_in_any_split() {
        let input = b"hello\r\nEND\r\n";
        for at in 0..=input.len() {
            let mut decoder = ValueDecoder::new(5);
            let first = decoder.decode(&input[..at]).unwrap();
            let second = decoder.decode(&input[at..]).unwrap();
            assert_eq!((first + second, decoder.is_done()), (5, true), "{at}");
            assert_eq!(decoder.decode(b"x"), Err((0, InvalidTrailer)));
        }
        let mut decoder = ValueDecoder::new(5);
        assert_eq!(decoder.decode(b"hello\r\nEN."), Err((5, InvalidTrailer)));
        assert!(!decoder.is_done());
    }
}
