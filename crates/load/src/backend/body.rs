//! The rest of a request's body.

use std::ops::Range;

use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder, InvalidChunked};
use wire::http1::framing::BodyLength;

/// The part of a body that is still to come.
pub(super) enum RemainingBody {
    Length(u64),
    Chunks(ChunkedDecoder),
}

impl RemainingBody {
    pub(super) fn of(body: BodyLength) -> Self {
        match body {
            BodyLength::None => Self::Length(0),
            BodyLength::Length(length) => Self::Length(length),
            BodyLength::Chunked => Self::Chunks(ChunkedDecoder::default()),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Length(length) => *length == 0,
            Self::Chunks(decoder) => decoder.is_done(),
        }
    }

    /// The range of body bytes in the input, and the number of consumed bytes.
    pub(super) fn next(&mut self, input: &[u8]) -> Result<(Range<usize>, usize), InvalidChunked> {
        match self {
            Self::Length(length) => {
                let here = usize::try_from(*length).map_or(input.len(), |all| all.min(input.len()));
                *length -= here as u64;
                Ok((0..here, here))
            }
            Self::Chunks(decoder) => Ok(match decoder.decode(input)? {
                ChunkDecoded::Data(part) => (part.clone(), part.end),
                ChunkDecoded::More => (0..0, input.len()),
                ChunkDecoded::End(end) | ChunkDecoded::Trailers(end) => (0..0, end),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: BodyLength, input: &[u8]) -> (Vec<u8>, usize) {
        let (mut rest, mut bytes, mut at) = (RemainingBody::of(body), Vec::new(), 0);
        while !rest.is_over() && at < input.len() {
            let (part, used) = rest.next(&input[at..]).unwrap();
            bytes.extend_from_slice(&input[at..][part]);
            at += used;
        }
        (bytes, at)
    }

    #[test]
    fn a_body_ends_where_the_next_request_begins() {
        assert_eq!(read(BodyLength::None, b"GET"), (vec![], 0));
        assert_eq!(read(BodyLength::Length(3), b"abcGET"), (b"abc".to_vec(), 3));
        let chunks = b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\nGET";
        assert_eq!(read(BodyLength::Chunked, chunks), (b"abc".to_vec(), chunks.len() - 3));
    }
}
