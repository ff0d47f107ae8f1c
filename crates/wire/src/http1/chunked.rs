//! The chunked transfer coding (RFC 9112, section 7.1): an incremental decoder, and chunk heads.
//!
//! The decoder returns ranges of its input and stores no bytes. Extensions are skipped up to a
//! limit, and so are trailer fields unless the caller reads them. It is strict, because a backend
//! may read the same bytes: lines end with CRLF, and a chunk size is followed by nothing, or by
//! spaces and ";".
//!
//! ```text
//! Start -> Size -> [AfterSize] -> [Extension] -> SizeLf -+-> Data -> DataCr -> DataLf -> Start
//!                                                        +-> TrailerStart (size 0)
//! TrailerStart -+-> Trailer -> TrailerLf -> TrailerStart
//!               +-> EndLf -> Done
//! ```

use core::ops::Range;

/// The most bytes of a chunk's line: its size, with leading zeros, and its extensions.
pub const CHUNK_LINE_MAX: u32 = 4096;

/// The most bytes of all trailer lines.
pub const TRAILERS_MAX: u32 = 8192;

/// A chunk is at most an `off_t`, as in nginx.
pub const CHUNK_SIZE_MAX: u64 = i64::MAX as u64 - 9;

/// The last chunk, without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The chunked coding is invalid: answer 400 and close. nginx logs [`InvalidChunked::MESSAGE`] at
/// info.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidChunked;

impl InvalidChunked {
    /// nginx's log message.
    pub const MESSAGE: &str = "client sent invalid chunked body";
}

/// The result of [`ChunkedDecoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkDecoded {
    /// Range of body bytes in the input. Input is consumed up to its end.
    Data(Range<usize>),
    /// All of the input is consumed; the body continues.
    More,
    /// The last chunk's line ends at the given offset; trailer fields and an empty line follow.
    /// Only with [`ChunkedDecoder::before_trailers`].
    Trailers(usize),
    /// The body is complete. Input after the given offset belongs to the next request.
    End(usize),
}

/// Finds the body in chunked bytes.
#[derive(Clone, Debug, Default)]
pub struct ChunkedDecoder {
    expect: ChunkState,
    /// The size read so far, then the rest of the chunk.
    size: u64,
    /// Bytes of the current chunk line, or of the trailers.
    line: u32,
    /// Whether the caller reads the trailers.
    stops_before_trailers: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Start,
    Size,
    AfterSize,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    Done,
}

impl ChunkedDecoder {
    /// A decoder that stops before the fields after the last chunk.
    pub fn before_trailers() -> Self {
        Self { stops_before_trailers: true, ..Self::default() }
    }

    /// The number of missing bytes of the current chunk, as far as its size was read.
    pub fn chunk_left(&self) -> u64 {
        self.size
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.expect == ChunkState::Done
    }

    /// Decodes from the start of `input`, which follows the bytes consumed before.
    pub fn decode(&mut self, input: &[u8]) -> Result<ChunkDecoded, InvalidChunked> {
        let mut at = 0;
        while self.expect != ChunkState::Done {
            if self.expect == ChunkState::Data {
                return Ok(self.data(at, input.len()));
            }
            let Some(&byte) = input.get(at) else { return Ok(ChunkDecoded::More) };
            self.expect = self.after(byte)?;
            at += 1;
            if self.stops_before_trailers && self.expect == ChunkState::TrailerStart {
                self.expect = ChunkState::Done;
                return Ok(ChunkDecoded::Trailers(at));
            }
        }
        Ok(ChunkDecoded::End(at))
    }

    fn data(&mut self, at: usize, end: usize) -> ChunkDecoded {
        let available = end - at;
        let length = usize::try_from(self.size).map_or(available, |size| size.min(available));
        if length == 0 {
            return ChunkDecoded::More;
        }
        self.size -= length as u64;
        if self.size == 0 {
            self.expect = ChunkState::DataCr;
        }
        ChunkDecoded::Data(at..at + length)
    }

    fn after(&mut self, byte: u8) -> Result<ChunkState, InvalidChunked> {
        use ChunkState::*;
        Ok(match (self.expect, byte) {
            (Start, _) => {
                self.size = 0;
                self.line = 0;
                self.digit(byte)?
            }
            (Size | AfterSize | Extension, b'\r') => SizeLf,
            (Size | AfterSize, b';') => self.within(CHUNK_LINE_MAX, Extension)?,
            (Size | AfterSize, b' ' | b'\t') => self.within(CHUNK_LINE_MAX, AfterSize)?,
            (Size, _) => self.digit(byte)?,
            (Extension, 0x20..=0x7e | b'\t' | 0x80..) => self.within(CHUNK_LINE_MAX, Extension)?,
            (SizeLf, b'\n') if self.size > 0 => Data,
            (SizeLf, b'\n') => {
                self.line = 0;
                TrailerStart
            }
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => Start,
            (TrailerStart, b'\r') => EndLf,
            (Trailer, b'\r') => TrailerLf,
            (TrailerLf, b'\n') => TrailerStart,
            (EndLf, b'\n') => Done,
            (TrailerStart | Trailer, 1..=9 | 0x0b..) => self.within(TRAILERS_MAX, Trailer)?,
            _ => return Err(InvalidChunked),
        })
    }

    fn digit(&mut self, byte: u8) -> Result<ChunkState, InvalidChunked> {
        let digit = crate::uri::hex(byte).ok_or(InvalidChunked)?;
        // This check prevents an overflow below.
        if self.size > CHUNK_SIZE_MAX >> 4 {
            return Err(InvalidChunked);
        }
        self.size = self.size << 4 | u64::from(digit);
        if self.size > CHUNK_SIZE_MAX {
            return Err(InvalidChunked);
        }
        self.within(CHUNK_LINE_MAX, ChunkState::Size)
    }

    fn within(&mut self, limit: u32, next: ChunkState) -> Result<ChunkState, InvalidChunked> {
        self.line += 1;
        if self.line > limit { Err(InvalidChunked) } else { Ok(next) }
    }
}

/// The line before a chunk's data: its size in hexadecimal and CRLF. Another CRLF follows the data.
#[derive(Clone, Copy, Debug)]
pub struct ChunkHead {
    bytes: [u8; CHUNK_HEAD_MAX],
    start: u8,
}

/// 16 digits and CRLF.
pub const CHUNK_HEAD_MAX: usize = 18;

impl ChunkHead {
    /// The head of a chunk of `size` bytes. A size of 0 would be the last chunk.
    pub fn new(size: u64) -> ChunkHead {
        let mut bytes = *b"0000000000000000\r\n";
        let mut start = CHUNK_HEAD_MAX - 2;
        let mut rest = size;
        while rest > 0 || start == CHUNK_HEAD_MAX - 2 {
            start -= 1;
            bytes[start] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
        }
        ChunkHead { bytes, start: start as u8 }
    }
}

impl AsRef<[u8]> for ChunkHead {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    /// The body and the offset of its end, decoded in pieces of `size` bytes; `None` if it is
    /// incomplete.
    fn decode(input: &[u8], size: usize) -> Result<Option<(Vec<u8>, usize)>, InvalidChunked> {
        let mut decoder = ChunkedDecoder::default();
        let mut body = Vec::new();
        let mut consumed = 0;
        for piece in input.chunks(size) {
            let mut at = 0;
            loop {
                match decoder.decode(&piece[at..])? {
                    ChunkDecoded::Data(range) => {
                        body.extend_from_slice(&piece[at..][range.clone()]);
                        at += range.end;
                    }
                    ChunkDecoded::More => break,
                    ChunkDecoded::Trailers(_) => unreachable!("they are skipped"),
                    ChunkDecoded::End(end) => return Ok(Some((body, consumed + at + end))),
                }
            }
            consumed += piece.len();
        }
        Ok(None)
    }

    #[test]
    fn chunk_left_counts_the_missing_bytes() {
        let mut decoder = ChunkedDecoder::default();
        for (input, left) in [("1", 1), ("0", 16), ("\r\n", 16), ("abc", 13), ("d", 12)] {
            decoder.decode(input.as_bytes()).expect("valid");
            assert_eq!(decoder.chunk_left(), left, "{input:?}");
        }
        decoder.decode(b"0123456789ab").expect("valid");
        decoder.decode(b"\r\n").expect("valid");
        assert_eq!(decoder.chunk_left(), 0);
    }

    #[test]
    fn bodies() {
        let table: &[(&str, &str)] = &[
            ("0\r\n\r\n", ""),
            ("3\r\nabc\r\n0\r\n\r\n", "abc"),
            ("3\r\nabc\r\n00A\r\n0123456789\r\n000\r\n\r\n", "abc0123456789"),
            ("3;a=b;c=\"d;e\"\r\nabc\r\n0;x\r\n\r\n", "abc"),
            ("3 \t;a\r\nabc\r\n0 \r\n\r\n", "abc"),
            ("1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", "\r\n"),
            ("0\r\nA: b\r\nC: d\r\n\r\n", ""),
        ];
        for (input, expected) in table {
            let with_next = format!("{input}GET /");
            for size in 1..=with_next.len() {
                let body = Ok(Some((expected.as_bytes().to_vec(), input.len())));
                assert_eq!(decode(with_next.as_bytes(), size), body, "{input:?} by {size}");
            }
            for end in 0..input.len() {
                assert_eq!(decode(&input.as_bytes()[..end], 100), Ok(None), "{input:?} to {end}");
            }
        }
    }

    #[test]
    fn invalid_bodies_are_refused() {
        for input in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            " 1\r\n",
            "0x1\r\n",
            ";\r\n",
            "1\n",
            "1\r\r\n",
            "1;a\n",
            "1;a\rb",
            "1;\0",
            "1 1\r\n",
            "1 a",
            "1\r\nab",
            "1\r\na\n",
            "1\r\na\r\r",
            "4\r\nSEE-THIS\r\n",
            "0\n",
            "0\r\n\n",
            "0\r\na: b\n",
            "0\r\na: b\rc",
            "0\r\n\rc",
            "0\r\na\0",
            "7ffffffffffffff7\r\n",
            "8000000000000000\r\n",
            "10000000000000000\r\n",
        ] {
            for size in 1..=input.len() {
                assert_eq!(decode(input.as_bytes(), size), Err(InvalidChunked), "{input:?}");
            }
        }
    }

    #[test]
    fn the_largest_chunk() {
        let mut decoder = ChunkedDecoder::default();
        let data = ChunkDecoded::Data(18..19);
        assert_eq!(decoder.decode(b"7ffffffffffffff6\r\na"), Ok(data));
        assert_eq!(decoder.size, CHUNK_SIZE_MAX - 1);
    }

    #[test]
    fn limits() {
        let body = |length: u32, begin: &str| {
            decode(&[begin.as_bytes(), &b"x".repeat(length as usize)].concat(), 1000)
        };
        assert_eq!(body(CHUNK_LINE_MAX - 2, "1;"), Ok(None));
        assert_eq!(body(CHUNK_LINE_MAX - 1, "1;"), Err(InvalidChunked));
        assert_eq!(body(TRAILERS_MAX, "0\r\n"), Ok(None));
        assert_eq!(body(TRAILERS_MAX + 1, "0\r\n"), Err(InvalidChunked));
        assert_eq!(decode(&[b'0'; CHUNK_LINE_MAX as usize + 1], 10), Err(InvalidChunked));
        assert_eq!(decode(&b"0\r\nab\r\n".repeat(5000), 10), Err(InvalidChunked));
    }

    #[test]
    fn a_finished_decoder_consumes_nothing() {
        let mut decoder = ChunkedDecoder::default();
        assert_eq!(decoder.decode(LAST_CHUNK), Ok(ChunkDecoded::End(5)));
        assert_eq!(decoder.decode(b"x"), Ok(ChunkDecoded::End(0)));
    }

    #[test]
    fn trailers_may_be_left_to_the_caller() {
        let input = b"3\r\nabc\r\n0;x\r\nA: b\r\n\r\n";
        let mut decoder = ChunkedDecoder::before_trailers();
        assert_eq!(decoder.decode(input), Ok(ChunkDecoded::Data(3..6)));
        assert_eq!(decoder.decode(&input[6..]), Ok(ChunkDecoded::Trailers(7)));
        assert!(decoder.is_done());
        let mut decoder = ChunkedDecoder::before_trailers();
        assert_eq!(decoder.decode(b"0\r"), Ok(ChunkDecoded::More));
        assert_eq!(decoder.decode(b"\n\r\n"), Ok(ChunkDecoded::Trailers(1)));
    }

    #[test]
    fn chunk_heads() {
        for size in [0, 1, 15, 16, 4096, 0xabcdef, u64::MAX] {
            assert_eq!(ChunkHead::new(size).as_ref(), format!("{size:x}\r\n").as_bytes());
        }
    }
}
