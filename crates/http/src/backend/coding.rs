//! How the end of a reply's body is found, and what of the bytes received is the body: sans-IO.

use std::borrow::Cow;

use observe::Text;
use wire::http1::chunked::{ChunkedDecoder, Decoded};
use wire::http1::response::{ReplyBody, ReplyError, ReplyHead};

use crate::exchange::{BodyError, Fields};

/// What is left of a body.
pub(crate) enum Coding {
    Length(u64),
    Chunked(ChunkedDecoder),
    /// The fields after the last chunk.
    Trailers(Box<Trailers>),
    Close,
    Ended,
}

/// Fields after a body, as far as they have come.
pub(crate) struct Trailers {
    text: Vec<u8>,
    head: ReplyHead,
}

/// What was found in what came.
#[derive(Default)]
pub(crate) struct Taken {
    /// Where the body ends in the buffer now.
    pub(crate) end: usize,
    /// More came than the reply has: nginx's words for it. The connection is used no more.
    pub(crate) surplus: Option<&'static str>,
    /// The fields after it.
    pub(crate) trailers: Option<Fields>,
}

const MORE_THAN_LENGTH: &str =
    "upstream sent more data than specified in \"Content-Length\" header";
const MORE_THAN_CHUNKS: &str = "upstream sent data after final chunk";
const MORE_THAN_TRAILERS: &str = "upstream sent data after trailers";
const INVALID_CHUNKED: &str = "upstream sent invalid chunked response";
const TOO_BIG_TRAILERS: &str = "upstream sent too big trailers";

impl Coding {
    /// `trailers`: whether those are looked at.
    pub(crate) fn of(body: ReplyBody, trailers: bool) -> Self {
        match body {
            ReplyBody::None => Self::Ended,
            ReplyBody::Length(length) => Self::Length(length),
            ReplyBody::Chunked if trailers => Self::Chunked(ChunkedDecoder::before_trailers()),
            ReplyBody::Chunked => Self::Chunked(ChunkedDecoder::default()),
            ReplyBody::Close => Self::Close,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// How many bytes are surely to come.
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

    /// Finds the body in `buffer` from `start` on, and moves it together there.
    pub(crate) fn take(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        trailers_max: usize,
    ) -> Result<Taken, BodyError> {
        match self {
            Self::Ended => Ok(Taken { end: start, ..Taken::default() }),
            Self::Close => Ok(Taken { end: buffer.len(), ..Taken::default() }),
            Self::Length(left) => {
                let received = buffer.len() - start;
                let taken = usize::try_from(*left).map_or(received, |left| left.min(received));
                *left -= taken as u64;
                if *left == 0 {
                    *self = Self::Ended;
                }
                let surplus = (taken < received).then_some(MORE_THAN_LENGTH);
                Ok(Taken { end: start + taken, surplus, trailers: None })
            }
            Self::Chunked(decoder) => {
                let (found, end, at) = unchunk(decoder, buffer, start)?;
                match found {
                    Found::More => Ok(Taken { end, ..Taken::default() }),
                    Found::End => {
                        *self = Self::Ended;
                        let surplus = (at < buffer.len()).then_some(MORE_THAN_CHUNKS);
                        Ok(Taken { end, surplus, trailers: None })
                    }
                    Found::Trailers => {
                        *self = Self::Trailers(Box::default());
                        let taken = self.take_trailers(&buffer[at..], trailers_max);
                        let mut taken = taken?;
                        taken.end = end;
                        if taken.surplus.is_some() {
                            taken.surplus = Some(MORE_THAN_CHUNKS);
                        }
                        Ok(taken)
                    }
                }
            }
            Self::Trailers(_) => {
                let mut taken = self.take_trailers(&buffer[start..], trailers_max)?;
                taken.end = start;
                Ok(taken)
            }
        }
    }

    fn take_trailers(&mut self, input: &[u8], max: usize) -> Result<Taken, BodyError> {
        let Self::Trailers(trailers) = self else { unreachable!("asked while they come") };
        let before = trailers.text.len();
        let room = max.saturating_sub(before).min(input.len());
        trailers.text.extend_from_slice(&input[..room]);
        let end = match trailers.head.parse(&trailers.text) {
            Ok(Some(end)) => end,
            Ok(None) if trailers.text.len() >= max => {
                return Err(BodyError::Upstream(TOO_BIG_TRAILERS.into()));
            }
            Ok(None) => return Ok(Taken::default()),
            Err(error) => return Err(BodyError::Upstream(trailers.refused(error))),
        };
        let surplus = (end - before < input.len()).then_some(MORE_THAN_TRAILERS);
        let trailers = Some(trailers.fields());
        *self = Self::Ended;
        Ok(Taken { end: 0, surplus, trailers })
    }
}

enum Found {
    More,
    Trailers,
    End,
}

/// Moves the data of chunks together at `start`. Where that ends, and where the body does.
fn unchunk(
    decoder: &mut ChunkedDecoder,
    buffer: &mut [u8],
    start: usize,
) -> Result<(Found, usize, usize), BodyError> {
    let (mut at, mut end) = (start, start);
    loop {
        let decoded = decoder.decode(&buffer[at..]);
        match decoded.map_err(|_| BodyError::Upstream(INVALID_CHUNKED.into()))? {
            Decoded::More => return Ok((Found::More, end, buffer.len())),
            Decoded::Trailers(used) => return Ok((Found::Trailers, end, at + used)),
            Decoded::End(used) => return Ok((Found::End, end, at + used)),
            Decoded::Data(data) => {
                let from = at + data.start..at + data.end;
                at = from.end;
                let length = from.len();
                buffer.copy_within(from, end);
                end += length;
            }
        }
    }
}

impl Default for Trailers {
    fn default() -> Self {
        Self { text: Vec::new(), head: ReplyHead::of_trailers(0) }
    }
}

impl Trailers {
    fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        for field in &self.head.fields {
            fields.append(field.name.of(&self.text), field.value.of(&self.text));
        }
        fields
    }

    fn refused(&self, error: ReplyError) -> Cow<'static, str> {
        match error {
            ReplyError::InvalidField(slice, byte) => {
                let text = Text(slice.of(&self.text));
                format!("upstream sent invalid trailer: \"{text}\\x{byte:02x}...\"").into()
            }
            _ => TOO_BIG_TRAILERS.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of what comes in pieces of `size`, what is said of it, and its trailers.
    fn take(body: ReplyBody, input: &str, size: usize) -> Result<String, String> {
        let mut coding = Coding::of(body, true);
        let mut out = String::new();
        for piece in input.as_bytes().chunks(size) {
            // Something else stands before it in the buffer.
            let mut buffer = [b"##", piece].concat();
            let taken = coding.take(&mut buffer, 2, 30).map_err(|error| format!("{error:?}"))?;
            out.push_str(std::str::from_utf8(&buffer[2..taken.end]).unwrap());
            for (name, value) in taken.trailers.iter().flat_map(Fields::iter) {
                out += &format!("[{}={}]", name.escape_ascii(), value.escape_ascii());
            }
            out.push_str(taken.surplus.unwrap_or_default());
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
    fn what_is_said_of_more_than_there_should_be() {
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
    fn what_is_no_body() {
        let table = [
            ("x\r\n", INVALID_CHUNKED),
            ("0\r\na b\r\n\r\n", "upstream sent invalid trailer: \\\"a\\\\x20...\\\""),
            ("0\r\nA: 3456789012345678901234567890\r\n\r\n", TOO_BIG_TRAILERS),
        ];
        for (input, expected) in table {
            for size in 1..=input.len() {
                let error = take(ReplyBody::Chunked, input, size).unwrap_err();
                assert_eq!(error, format!("Upstream(\"{expected}\")"), "{input:?}");
            }
        }
    }
}
