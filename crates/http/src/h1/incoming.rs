//! Decodes the body of the current request from bytes of HTTP/1, and tracks how much of it is still
//! to come.
//!
//! It keeps no bytes. A body that is discarded is decoded as well, to find its end.

use std::ops::Range;

use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder};
use wire::http1::framing::BodyLength;

use crate::exchange::RequestBodyError;

/// The body of a request while it is received.
#[derive(Default)]
pub(super) struct BodyInput {
    coding: BodyCoding,
    /// Decoded bytes of the body so far.
    received: u64,
    /// Encoded bytes read so far, without discarded ones.
    pub(super) read: u64,
    /// Whether the client waits for `100 Continue`.
    pub(super) expects_continue: bool,
    /// Whether the exchange reads the body, or has read some of it.
    pub(super) claimed: bool,
    /// Whether the end of the body cannot be found, so that the connection cannot be reused.
    pub(super) abandoned: bool,
}

#[derive(Default)]
enum BodyCoding {
    #[default]
    Ended,
    /// This many bytes are still to come.
    Length(u64),
    Chunked(ChunkedDecoder),
}

impl BodyInput {
    pub(super) fn new(body: BodyLength, expects_continue: bool) -> Self {
        let coding = match body {
            BodyLength::None | BodyLength::Length(0) => BodyCoding::Ended,
            BodyLength::Length(length) => BodyCoding::Length(length),
            BodyLength::Chunked => BodyCoding::Chunked(ChunkedDecoder::default()),
        };
        Self { coding, expects_continue, ..Self::default() }
    }

    /// A body whose end cannot be found.
    pub(super) fn abandoned() -> Self {
        Self { abandoned: true, ..Self::default() }
    }

    /// Whether the whole body was received.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.coding, BodyCoding::Ended)
    }

    /// Whether `input`, the bytes that follow those already decoded, contains the rest of the body.
    pub(super) fn is_whole_in(&self, input: &[u8]) -> bool {
        match &self.coding {
            BodyCoding::Ended => true,
            BodyCoding::Length(left) => input.len() as u64 >= *left,
            BodyCoding::Chunked(decoder) => {
                let (mut decoder, mut at) = (decoder.clone(), 0);
                while let Ok(ChunkDecoded::Data(data)) = decoder.decode(&input[at..]) {
                    at += data.end;
                }
                decoder.is_done()
            }
        }
    }

    /// The number of bytes that belong to a body with a length. They may be read without
    /// decoding.
    pub(super) fn plain_length(&self) -> Option<u64> {
        match self.coding {
            BodyCoding::Length(left) => Some(left),
            BodyCoding::Ended | BodyCoding::Chunked(_) => None,
        }
    }

    /// Records that `count` bytes of such a body were read without decoding.
    pub(super) fn advance(&mut self, count: usize) {
        let BodyCoding::Length(left) = &mut self.coding else {
            unreachable!("the body has a length")
        };
        *left -= count as u64;
        self.received += count as u64;
        self.read += count as u64;
        if *left == 0 {
            self.coding = BodyCoding::Ended;
        }
    }

    /// Decodes `input`, which continues what was taken before, and passes at most `room` bytes to
    /// `out`. Returns how many bytes of `input` belong to the body.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        room: usize,
        size_max: u64,
        mut out: impl FnMut(&[u8]),
    ) -> Result<usize, RequestBodyError> {
        let (mut used, mut gained) = (0, 0);
        while gained < room && used < input.len() && !self.is_ended() {
            let rest = &input[used..];
            // The decoder is given no more than `room` bytes, so no more can come out of it.
            let rest = &rest[..rest.len().min(room - gained)];
            let (step, data) = self.step(rest, size_max)?;
            self.received += data.len() as u64;
            gained += data.len();
            used += step;
            out(&rest[data]);
        }
        self.read += used as u64;
        Ok(used)
    }

    /// Returns how many bytes of `rest` are consumed, and the range of decoded bytes in them.
    fn step(
        &mut self,
        rest: &[u8],
        size_max: u64,
    ) -> Result<(usize, Range<usize>), RequestBodyError> {
        match &mut self.coding {
            BodyCoding::Ended => Ok((0, 0..0)),
            BodyCoding::Length(left) => {
                let count = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                if *left == 0 {
                    self.coding = BodyCoding::Ended;
                }
                Ok((count, 0..count))
            }
            BodyCoding::Chunked(decoder) => {
                let decoded = decoder.decode(rest).map_err(|_| RequestBodyError::Invalid)?;
                let (used, data) = match decoded {
                    ChunkDecoded::Data(data) => (data.end, data),
                    ChunkDecoded::More => (rest.len(), 0..0),
                    ChunkDecoded::Trailers(end) | ChunkDecoded::End(end) => (end, 0..0),
                };
                let chunk = decoder.chunk_left().saturating_add(data.len() as u64);
                if decoder.is_done() {
                    self.coding = BodyCoding::Ended;
                } else if size_max != 0 && self.received.saturating_add(chunk) > size_max {
                    return Err(RequestBodyError::TooLarge { received: self.received, chunk });
                }
                Ok((used, data))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(incoming: &mut BodyInput, input: &[u8], room: usize) -> (String, usize) {
        let mut out = Vec::new();
        let used = incoming.take(input, room, 0, |bytes| out.extend_from_slice(bytes)).unwrap();
        (String::from_utf8(out).unwrap(), used)
    }

    #[test]
    fn a_body_ends_where_the_next_request_begins() {
        let table: [(BodyLength, &[u8], usize, &str, usize); 7] = [
            (BodyLength::None, b"GET", 9, "", 0),
            (BodyLength::Length(0), b"GET", 9, "", 0),
            (BodyLength::Length(3), b"abcGET", 9, "abc", 3),
            (BodyLength::Length(3), b"ab", 9, "ab", 2),
            (BodyLength::Length(3), b"abcGET", 2, "ab", 2),
            (BodyLength::Chunked, b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\nGET", 99, "abcde", 22),
            (BodyLength::Chunked, b"3\r\nabc\r\n", 2, "ab", 5),
        ];
        for (body, input, room, data, used) in table {
            let mut incoming = BodyInput::new(body, false);
            assert_eq!(take(&mut incoming, input, room), (data.to_owned(), used), "{body:?}");
            assert_eq!(incoming.read, used as u64, "{body:?}");
        }
    }

    #[test]
    fn a_body_that_is_there_already() {
        let table: [(BodyLength, &[u8], bool); 6] = [
            (BodyLength::Length(3), b"abcGET", true),
            (BodyLength::Length(3), b"ab", false),
            (BodyLength::Chunked, b"1\r\na\r\n1\r\nb\r\n0\r\n\r\nGET", true),
            (BodyLength::Chunked, b"1\r\na\r\n0\r\n\r", false),
            (BodyLength::Chunked, b"1\r\na\r\nx", false),
            (BodyLength::None, b"", true),
        ];
        for (body, input, whole) in table {
            assert_eq!(BodyInput::new(body, false).is_whole_in(input), whole, "{body:?}");
        }
    }

    #[test]
    fn a_chunk_too_large_is_refused_by_its_head() {
        let mut incoming = BodyInput::new(BodyLength::Chunked, false);
        assert_eq!(incoming.take(b"3\r\nabc\r\n", 9, 5, |_| {}).unwrap(), 8);
        match incoming.take(b"3\r\n", 9, 5, |_| {}) {
            Err(RequestBodyError::TooLarge { received: 3, chunk: 3 }) => {}
            Err(error) => panic!("{error:?}"),
            Ok(_) => panic!("taken"),
        }
        assert!(matches!(
            BodyInput::new(BodyLength::Chunked, false).take(b"x", 9, 0, |_| {}),
            Err(RequestBodyError::Invalid)
        ));
    }
}
