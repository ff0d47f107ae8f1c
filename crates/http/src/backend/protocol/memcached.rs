//! A memcached request for one key.

use std::sync::Arc;

use observe::{Level, Text};
use wire::Slice;
use wire::memcached::{AnswerError, InvalidTrailer, MemcachedAnswer, ValueDecoder, answer, number};
use wire::reply::{ReplyField, ReplyHead, ReplyName};

use super::{
    BackendMessage, DecodedBody, Frame, HeadEvent, Protocol, ProtocolError, ReplyLength,
    ReplyReader, Start,
};

#[derive(Clone)]
pub(crate) struct MemcachedRequest {
    /// The key as it is sent.
    pub(crate) key: Arc<[u8]>,
    /// Whether it is for a HEAD request: the reply has no body.
    pub(crate) to_head: bool,
    /// The bit in an item's flags that marks a compressed value; 0 if no bit does.
    pub(crate) gzip_flag: u64,
}

/// A request for a key, and the answer.
pub(crate) struct Memcached {
    request: MemcachedRequest,
    /// Whether a missing key was logged.
    is_missing: bool,
    value: ValueDecoder,
    state: MemcachedState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MemcachedState {
    Reading,
    /// The reply has ended, and the connection cannot be used again.
    Broken,
    Done,
}

impl Start for MemcachedRequest {
    type Protocol = Memcached;
    const SCHEMA: &'static str = "memcached://";

    fn start(&self) -> Memcached {
        Memcached {
            request: self.clone(),
            is_missing: false,
            value: ValueDecoder::new(0),
            state: MemcachedState::Reading,
        }
    }
}

impl Memcached {
    fn not_found(&mut self, bytes: usize, received: usize, head: &mut ReplyHead) -> HeadEvent {
        if !std::mem::replace(&mut self.is_missing, true) {
            let text = format!("key: \"{}\" was not found by memcached", Text(&self.request.key));
            return HeadEvent::Log(BackendMessage { level: Level::Info, text: text.into() });
        }
        head.status = 404;
        self.state = if received == bytes { MemcachedState::Done } else { MemcachedState::Broken };
        HeadEvent::Complete { bytes, body: ReplyLength::None }
    }

    /// Whether a value with these flags is compressed.
    fn is_compressed(&self, flags: Slice, input: &[u8]) -> Result<bool, ProtocolError> {
        if self.request.gzip_flag == 0 {
            return Ok(false);
        }
        let line = input.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let flags = number(flags.of(input)).ok_or_else(|| self.invalid("flags", line))?;
        Ok(flags & self.request.gzip_flag != 0)
    }

    fn invalid(&self, what: &str, line: &[u8]) -> ProtocolError {
        let (line, key) = (Text(line), Text(&self.request.key));
        format!("memcached sent invalid {what} in response \"{line}\" for key \"{key}\"").into()
    }

    fn describe(&self, error: AnswerError, input: &[u8]) -> ProtocolError {
        match error {
            AnswerError::Invalid(line) => {
                format!("memcached sent invalid response: \"{}\"", Text(line.of(input))).into()
            }
            AnswerError::Key(line) => self.invalid("key", line.of(input)),
            AnswerError::Length(line) => self.invalid("length", line.of(input)),
        }
    }
}

impl Protocol for Memcached {
    fn frame(&mut self, available: u64, _is_last: bool) -> Frame {
        Frame::bare(available)
    }
}

impl ReplyReader for Memcached {
    fn head(
        &mut self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
    ) -> Result<HeadEvent, ProtocolError> {
        let answered =
            answer(&self.request.key, input).map_err(|error| self.describe(error, input))?;
        let (flags, length, mut bytes) = match answered {
            None => return Ok(HeadEvent::Partial),
            Some(MemcachedAnswer::NotFound { head_bytes }) => {
                return Ok(self.not_found(head_bytes, input.len(), head));
            }
            Some(MemcachedAnswer::Value { flags, length, head_bytes }) => {
                (flags, length, head_bytes)
            }
        };
        if self.is_compressed(flags, input)? {
            add_field(b"Content-Encoding: gzip", &mut bytes, input, head);
        }
        head.status = 200;
        self.value = ValueDecoder::new(length);
        if self.request.to_head {
            let line = format!("Content-Length: {length}");
            add_field(line.as_bytes(), &mut bytes, input, head);
            return Ok(HeadEvent::Complete { bytes, body: ReplyLength::None });
        }
        Ok(HeadEvent::Complete { bytes, body: ReplyLength::Known(length) })
    }

    fn body(&mut self, buffer: &mut [u8], start: usize) -> DecodedBody {
        if self.is_ended() {
            return DecodedBody::up_to(start);
        }
        match self.value.decode(&buffer[start..]) {
            Ok(count) => {
                if self.value.is_done() {
                    self.state = MemcachedState::Done;
                }
                DecodedBody::up_to(start + count)
            }
            Err((count, InvalidTrailer)) => {
                self.state = MemcachedState::Broken;
                let text = "memcached sent invalid trailer".into();
                let messages = vec![BackendMessage { level: Level::Error, text }];
                DecodedBody { messages, ..DecodedBody::up_to(start + count) }
            }
        }
    }

    fn is_ended(&self) -> bool {
        self.state != MemcachedState::Reading
    }

    fn body_left(&self) -> u64 {
        self.value.data_left()
    }

    fn may_reuse(&self) -> bool {
        self.state == MemcachedState::Done
    }
}

/// Adds a field to the head as if memcached had sent it as a line.
fn add_field(line: &[u8], head_bytes: &mut usize, input: &mut Vec<u8>, head: &mut ReplyHead) {
    let at = *head_bytes;
    input.splice(at..at, line.iter().copied());
    *head_bytes += line.len();
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let slice = |from: usize, to: usize| Slice { start: (at + from) as u32, end: (at + to) as u32 };
    let (name, value) = (slice(0, colon), slice((colon + 2).min(line.len()), line.len()));
    head.fields.push(ReplyField { name, value, id: ReplyName::of(&line[..colon]) });
}
