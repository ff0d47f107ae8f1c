//! Finds a reply's body and its end in the bytes received: sans-IO.

use observe::{Level, Text};
use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder};
use wire::http1::response::ReplyBody;
use wire::reply::{FieldParser, ReplyFieldError, ReplyFieldList};

use super::super::{BackendMessage, DecodedBody, ProtocolError};
use crate::exchange::Fields;

/// The rest of a body.
pub(super) enum ReplyCoding {
    Length(u64),
    Chunked(ChunkedDecoder),
    /// The fields after the last chunk.
    Trailers(Box<Trailers>),
    Close,
    Ended,
}

/// Fields after a body, as far as they were received.
#[derive(Default)]
pub(super) struct Trailers {
    text: Vec<u8>,
    fields: ReplyFieldList,
    parser: FieldParser,
}

const MORE_THAN_LENGTH: &str =
    "upstream sent more data than specified in \"Content-Length\" header";
const MORE_THAN_CHUNKS: &str = "upstream sent data after final chunk";
const MORE_THAN_TRAILERS: &str = "upstream sent data after trailers";
const INVALID_CHUNKED: &str = "upstream sent invalid chunked response";
const TOO_BIG_TRAILERS: &str = "upstream sent too big trailers";

impl ReplyCoding {
    /// `trailers`: whether those are read.
    pub(super) fn of(body: ReplyBody, trailers: bool) -> Self {
        match body {
            ReplyBody::None => Self::Ended,
            ReplyBody::Length(length) => Self::Length(length),
            ReplyBody::Chunked if trailers => Self::Chunked(ChunkedDecoder::before_trailers()),
            ReplyBody::Chunked => Self::Chunked(ChunkedDecoder::default()),
            ReplyBody::Close => Self::Close,
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self, Self::Ended | Self::Length(0))
    }

    /// The number of bytes that must follow.
    pub(super) fn left(&self) -> u64 {
        match self {
            Self::Length(left) => *left,
            _ => 0,
        }
    }

    /// Whether all chunks that have begun are complete.
    pub(super) fn is_between_chunks(&self) -> bool {
        matches!(self, Self::Chunked(decoder) if decoder.chunk_left() == 0)
    }

    /// Finds the body in `buffer` from `start` on, and removes the framing in place. Reads at most
    /// `trailers_max` bytes of trailers.
    pub(super) fn take(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        trailers_max: u32,
    ) -> Result<DecodedBody, ProtocolError> {
        match self {
            Self::Ended => Ok(DecodedBody::up_to(start)),
            Self::Close => Ok(DecodedBody::up_to(buffer.len())),
            Self::Length(left) => {
                let received = buffer.len() - start;
                let taken = usize::try_from(*left).map_or(received, |left| left.min(received));
                *left -= taken as u64;
                if *left == 0 {
                    *self = Self::Ended;
                }
                Ok(ended(start + taken, taken < received, MORE_THAN_LENGTH))
            }
            Self::Chunked(decoder) => {
                let (found, end, at) = unchunk(decoder, buffer, start)?;
                match found {
                    ChunkPiece::More => Ok(DecodedBody::up_to(end)),
                    ChunkPiece::End => {
                        *self = Self::Ended;
                        Ok(ended(end, at < buffer.len(), MORE_THAN_CHUNKS))
                    }
                    ChunkPiece::Trailers => {
                        let mut trailers = Box::<Trailers>::default();
                        let read = trailers.read(&buffer[at..], trailers_max)?;
                        *self = Self::Trailers(trailers);
                        Ok(self.end_trailers(read, buffer.len() - at, end, MORE_THAN_CHUNKS))
                    }
                }
            }
            Self::Trailers(trailers) => {
                let read = trailers.read(&buffer[start..], trailers_max)?;
                Ok(self.end_trailers(read, buffer.len() - start, start, MORE_THAN_TRAILERS))
            }
        }
    }

    /// Ends the body, at `end` in the buffer, if the trailers are complete.
    fn end_trailers(
        &mut self,
        read: Option<(usize, Fields)>,
        received: usize,
        end: usize,
        surplus: &'static str,
    ) -> DecodedBody {
        let Some((used, fields)) = read else { return DecodedBody::up_to(end) };
        *self = Self::Ended;
        DecodedBody { trailers: Some(fields), ..ended(end, used < received, surplus) }
    }
}

/// A complete body; `has_surplus`: further bytes were received, which is logged.
fn ended(end: usize, has_surplus: bool, text: &'static str) -> DecodedBody {
    let line = has_surplus.then(|| BackendMessage { level: Level::Warn, text: text.into() });
    DecodedBody { end, messages: line.into_iter().collect(), ..DecodedBody::default() }
}

enum ChunkPiece {
    More,
    Trailers,
    End,
}

/// Moves the data of chunks together at `start`. Returns the end of the data, and the end of the
/// body.
fn unchunk(
    decoder: &mut ChunkedDecoder,
    buffer: &mut [u8],
    start: usize,
) -> Result<(ChunkPiece, usize, usize), ProtocolError> {
    let (mut at, mut end) = (start, start);
    loop {
        let decoded = decoder.decode(&buffer[at..]);
        match decoded.map_err(|_| ProtocolError::from(INVALID_CHUNKED))? {
            ChunkDecoded::More => return Ok((ChunkPiece::More, end, buffer.len())),
            ChunkDecoded::Trailers(used) => return Ok((ChunkPiece::Trailers, end, at + used)),
            ChunkDecoded::End(used) => return Ok((ChunkPiece::End, end, at + used)),
            ChunkDecoded::Data(data) => {
                let from = at + data.start..at + data.end;
                at = from.end;
                let length = from.len();
                buffer.copy_within(from, end);
                end += length;
            }
        }
    }
}

impl Trailers {
    /// Parses more. `Some` when complete: their length in `input`, and the fields.
    fn read(
        &mut self,
        input: &[u8],
        bytes_max: u32,
    ) -> Result<Option<(usize, Fields)>, ProtocolError> {
        let (before, bytes_max) = (self.text.len(), bytes_max as usize);
        let room = bytes_max.saturating_sub(before).min(input.len());
        self.text.extend_from_slice(&input[..room]);
        match self.parser.parse(&mut self.fields, &self.text) {
            Ok(Some(end)) => Ok(Some((end - before, self.fields()))),
            Ok(None) if self.text.len() >= bytes_max => Err(TOO_BIG_TRAILERS.into()),
            Ok(None) => Ok(None),
            Err(ReplyFieldError::Invalid(slice, byte)) => {
                let text = Text(slice.of(&self.text));
                Err(format!("upstream sent invalid trailer: \"{text}\\x{byte:02x}...\"").into())
            }
            Err(ReplyFieldError::TooMany) => Err(TOO_BIG_TRAILERS.into()),
        }
    }

    fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        for field in &self.fields {
            fields.append(field.name.of(&self.text), field.value.of(&self.text));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of input in pieces of `size`, its messages, and its trailers.
    fn take(body: ReplyBody, input: &str, size: usize) -> Result<String, ProtocolError> {
        let mut coding = ReplyCoding::of(body, true);
        let mut out = String::new();
        for piece in input.as_bytes().chunks(size) {
            // Other bytes precede it in the buffer.
            let mut buffer = [b"##", piece].concat();
            let taken = coding.take(&mut buffer, 2, 30)?;
            out.push_str(std::str::from_utf8(&buffer[2..taken.end]).unwrap());
            for (name, value) in taken.trailers.iter().flat_map(Fields::iter) {
                out += &format!("[{}={}]", name.escape_ascii(), value.escape_ascii());
            }
            out.push_str(taken.messages.first().map_or("", |line| &line.text));
            if coding.is_ended() {
                return Ok(out + ".");
            }
        }
        Ok(out)
    }

    #[test]
    fn bodies_in_pieces_of_every_size() {
        use ReplyBody::{Chunked, Close, Length, None};
        let table = [
            (None, "", ""),
            (Length(3), "abc", "abc."),
            (Length(4), "abc", "abc"),
            (Close, "abc", "abc"),
            (Chunked, "3\r\nabc\r\n1;x\r\nd\r\n0\r\n\r\n", "abcd."),
            (Chunked, "1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n", "a[X=y][Z=]."),
            (Chunked, "1\r\na\r\n0\r\n", "a"),
        ];
        for (body, input, expected) in table {
            for size in 1..=input.len().max(1) {
                assert_eq!(take(body, input, size).unwrap(), expected, "{input:?} by {size}");
            }
        }
    }

    #[test]
    fn surplus_bytes_are_reported() {
        use ReplyBody::{Chunked, Length};
        let table = [
            (Length(2), "abc", 9, format!("ab{MORE_THAN_LENGTH}.")),
            (Length(0), "abc", 9, format!("{MORE_THAN_LENGTH}.")),
            (Chunked, "1\r\na\r\n0\r\n\r\nX", 99, format!("a{MORE_THAN_CHUNKS}.")),
            (Chunked, "0\r\nA: b\r\n\r\nX", 6, format!("[A=b]{MORE_THAN_TRAILERS}.")),
        ];
        for (body, input, size, expected) in table {
            assert_eq!(take(body, input, size).unwrap(), expected, "{input:?}");
        }
    }

    #[test]
    fn invalid_bodies_are_errors() {
        let table = [
            ("x\r\n", INVALID_CHUNKED),
            ("0\r\na b\r\n\r\n", "upstream sent invalid trailer: \"a\\x20...\""),
            ("0\r\nA: 3456789012345678901234567890\r\n\r\n", TOO_BIG_TRAILERS),
        ];
        for (input, expected) in table {
            for size in 1..=input.len() {
                let error = take(ReplyBody::Chunked, input, size).unwrap_err();
                assert_eq!(error, expected, "{input:?}");
            }
        }
    }
}
