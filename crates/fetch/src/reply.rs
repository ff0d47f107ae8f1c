//! Reads a reply: bytes in, a [`FetchResponse`] out, without a socket and a clock.
//!
//! ```text
//! Head --interim head--> Head --final head--> Length | Chunks | Close --> Ended
//! ```

use net::memory;
use observe::Text;
use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder};
use wire::http1::response::{ReplyBody, ReplyError, ResponseHeadParser};
use wire::reply::{ReplyField, ReplyHead};

use crate::error::FetchFault;
use crate::limits::FetchLimits;
use crate::response::FetchResponse;

/// Interim replies (1xx) before the final one.
const INTERIM_REPLIES_MAX: u8 = 64;

/// One reply, as far as it was received.
pub(crate) struct FetchReplyReader {
    /// Whether it answers a HEAD request.
    to_head: bool,
    limits: FetchLimits,
    expect: ExpectedPart,
    parser: ResponseHeadParser,
    head: ReplyHead,
    /// The head in progress; then the final one.
    text: Vec<u8>,
    /// Bytes of interim heads.
    interim_bytes: usize,
    interim_replies: u8,
    body: Vec<u8>,
    has_begun: bool,
    /// Whether bytes follow the reply.
    has_surplus: bool,
    /// Whether the connection ends with the reply.
    closes: bool,
}

/// The part that is expected next.
enum ExpectedPart {
    Head,
    Length(usize),
    Chunks(ChunkedDecoder),
    /// Everything until the connection ends.
    Close,
    Ended,
}

impl FetchReplyReader {
    pub(crate) fn new(to_head: bool, limits: FetchLimits) -> Self {
        Self {
            to_head,
            limits,
            expect: ExpectedPart::Head,
            parser: ResponseHeadParser::default(),
            head: ReplyHead::default(),
            text: Vec::new(),
            interim_bytes: 0,
            interim_replies: 0,
            body: Vec::new(),
            has_begun: false,
            has_surplus: false,
            closes: true,
        }
    }

    /// Whether a byte was received.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.expect, ExpectedPart::Ended)
    }

    /// The number of bytes of the body so far.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Whether another reply may follow on the connection.
    pub(crate) fn may_go_on(&self) -> bool {
        self.is_ended() && !self.closes && !self.has_surplus
    }

    pub(crate) fn receive(&mut self, input: &[u8]) -> Result<(), FetchFault> {
        self.has_begun = true;
        if !matches!(self.expect, ExpectedPart::Head) {
            return self.receive_body(input);
        }
        self.text.extend_from_slice(input);
        while let Some(bytes) = self.parse_head()? {
            if matches!(self.head.status, 100 | 102..=199) {
                self.pass_over(bytes)?;
                continue;
            }
            let rest = self.text.split_off(bytes);
            self.expect = self.begin_body()?;
            return self.receive_body(&rest);
        }
        Ok(())
    }

    /// The peer has closed the connection. `is_cut`: the end may have been forged.
    pub(crate) fn close(&mut self, is_cut: bool) -> Result<(), FetchFault> {
        if !matches!(self.expect, ExpectedPart::Close) || is_cut {
            return Err(FetchFault::Closed);
        }
        self.expect = ExpectedPart::Ended;
        Ok(())
    }

    pub(crate) fn response(self) -> FetchResponse {
        debug_assert!(self.is_ended(), "the whole reply");
        FetchResponse { head: self.head, text: self.text, body: self.body }
    }

    /// The length of the head, if all of it was received. Bytes beyond the limit are not parsed.
    fn parse_head(&mut self) -> Result<Option<usize>, FetchFault> {
        let bytes_max = self.limits.head_bytes_max - self.interim_bytes;
        let input = &self.text[..self.text.len().min(bytes_max)];
        let parsed = self.parser.parse(&mut self.head, input);
        let parsed = parsed.map_err(|error| invalid(error, input))?;
        if parsed.is_none() && input.len() == bytes_max {
            return Err(FetchFault::TooLargeHead(self.limits.head_bytes_max));
        }
        Ok(parsed)
    }

    /// Skips an interim head.
    fn pass_over(&mut self, bytes: usize) -> Result<(), FetchFault> {
        self.interim_replies += 1;
        if self.interim_replies > INTERIM_REPLIES_MAX {
            let most = INTERIM_REPLIES_MAX;
            return Err(FetchFault::InvalidReply(format!("more than {most} interim replies")));
        }
        self.interim_bytes += bytes;
        self.text.drain(..bytes);
        self.head.reset();
        self.parser = ResponseHeadParser::default();
        Ok(())
    }

    /// The part that follows the final head.
    fn begin_body(&mut self) -> Result<ExpectedPart, FetchFault> {
        if self.head.status == 101 {
            return Err(FetchFault::InvalidReply("another protocol, unasked".into()));
        }
        let body = ReplyBody::of(&self.head, &self.text, self.to_head);
        let body = body.map_err(|error| invalid(error, &self.text))?;
        self.closes = body == ReplyBody::Close || self.parser.closes(&self.head, &self.text);
        Ok(match body {
            ReplyBody::None | ReplyBody::Length(0) => ExpectedPart::Ended,
            ReplyBody::Chunked => ExpectedPart::Chunks(ChunkedDecoder::default()),
            ReplyBody::Close => ExpectedPart::Close,
            ReplyBody::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > self.limits.body_bytes_max {
                    return Err(FetchFault::TooLargeBody(self.limits.body_bytes_max));
                }
                ExpectedPart::Length(length)
            }
        })
    }

    fn receive_body(&mut self, input: &[u8]) -> Result<(), FetchFault> {
        let used = match &mut self.expect {
            // `receive` consumes all input of a head.
            ExpectedPart::Head | ExpectedPart::Ended => 0,
            ExpectedPart::Close => {
                self.keep(input)?;
                input.len()
            }
            ExpectedPart::Length(left) => {
                let count = input.len().min(*left);
                *left -= count;
                if *left == 0 {
                    self.expect = ExpectedPart::Ended;
                }
                self.keep(&input[..count])?;
                count
            }
            ExpectedPart::Chunks(_) => self.receive_chunks(input)?,
        };
        self.has_surplus |= used < input.len();
        Ok(())
    }

    /// Returns the number of bytes of `input` that belong to the body.
    fn receive_chunks(&mut self, input: &[u8]) -> Result<usize, FetchFault> {
        let mut at = 0;
        while let ExpectedPart::Chunks(decoder) = &mut self.expect {
            let decoded = decoder.decode(&input[at..]);
            let malformed = |_| FetchFault::InvalidReply("invalid chunks".into());
            match decoded.map_err(malformed)? {
                ChunkDecoded::Data(data) => {
                    self.keep(&input[at + data.start..at + data.end])?;
                    at += data.end;
                }
                ChunkDecoded::More => return Ok(input.len()),
                ChunkDecoded::End(used) | ChunkDecoded::Trailers(used) => {
                    self.expect = ExpectedPart::Ended;
                    at += used;
                }
            }
        }
        Ok(at)
    }

    /// Appends to the body.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), FetchFault> {
        if bytes.len() > self.limits.body_bytes_max - self.body.len() {
            return Err(FetchFault::TooLargeBody(self.limits.body_bytes_max));
        }
        let reserved = memory::try_reserve(&mut self.body, bytes.len());
        reserved.map_err(|error| FetchFault::Connection(error.into()))?;
        self.body.extend_from_slice(bytes);
        Ok(())
    }
}

/// Describes the error in the head with the text `input`.
fn invalid(error: ReplyError, input: &[u8]) -> FetchFault {
    let name = |field: ReplyField| Text(field.name.of(input)).to_string();
    FetchFault::InvalidReply(match error {
        ReplyError::NotHttp => "the reply is not HTTP".into(),
        ReplyError::InvalidField(line, byte) => {
            format!("invalid byte 0x{byte:02x} after \"{}\" in a field", Text(line.of(input)))
        }
        ReplyError::DuplicateField { field, .. } => format!("two fields \"{}\"", name(field)),
        ReplyError::InvalidContentLength(field) => {
            format!("invalid Content-Length \"{}\"", Text(field.value.of(input)))
        }
        ReplyError::LengthAndCoding => "both Content-Length and Transfer-Encoding".into(),
        ReplyError::UnknownCoding(value) => {
            format!("unknown Transfer-Encoding \"{}\"", Text(value.of(input)))
        }
        ReplyError::TooManyFields => "too many fields".into(),
    })
}

#[cfg(test)]
mod tests;
