//! Parses the replies of a server, without a socket.
//!
//! ```text
//! Head -+-> Length -+-> Head
//!       +-> Chunked +
//!       +-> Close ----> (the connection's end)
//! ```

use wire::Version;
use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder};
use wire::http1::response::{ReplyBody, ResponseHeadParser};
use wire::reply::{ReplyField, ReplyHead, ReplyName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteReply {
    /// Its status; 0 if it has none.
    pub status: u16,
    /// Whether the connection is kept after it.
    pub keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSearch {
    /// No complete reply: this many bytes are consumed, and more are needed.
    More(usize),
    /// A reply, and its end in the bytes.
    Reply(usize, CompleteReply),
}

/// The received bytes are not a reply to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The longest head of a reply.
pub const HEAD_MAX: usize = 64 * 1024;

/// The replies of one connection.
#[derive(Debug)]
pub struct Replies {
    head: ReplyHead,
    parser: ResponseHeadParser,
    expect: ReplyState,
    /// The expected bytes for each request, if it is not HTTP.
    echo: Option<Box<[u8]>>,
    reply: CompleteReply,
    /// The reply for a script.
    heard: Option<Box<ScriptReply>>,
}

/// A parser for HTTP.
impl Default for Replies {
    fn default() -> Self {
        Self {
            head: ReplyHead::default(),
            parser: ResponseHeadParser::default(),
            expect: ReplyState::Head,
            echo: None,
            reply: CompleteReply { status: 0, keep: true },
            heard: None,
        }
    }
}

#[derive(Debug, Default)]
pub struct ScriptReply {
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
}

#[derive(Debug)]
enum ReplyState {
    Head,
    Length(u64),
    Chunked(ChunkedDecoder),
    Close,
    /// An echo, of which this many bytes were received.
    Echo(usize),
}

impl Replies {
    /// Sets whether fields and bodies are kept for a script.
    pub fn listen(&mut self, listens: bool) {
        if listens != self.heard.is_some() {
            self.heard = listens.then(Box::default);
        }
    }

    /// Expects these bytes for each request, instead of HTTP.
    pub fn expect_echo(&mut self, message: &[u8]) {
        if self.echo.as_deref() != Some(message) {
            self.echo = Some(message.into());
        }
        self.begin_reply();
    }

    /// Restarts, for a new connection.
    pub fn reset(&mut self) {
        self.reset_head();
        self.begin_reply();
    }

    fn reset_head(&mut self) {
        self.head.reset();
        self.parser = ResponseHeadParser::default();
    }

    fn begin_reply(&mut self) {
        self.expect = if self.echo.is_some() { ReplyState::Echo(0) } else { ReplyState::Head };
    }

    /// The last complete reply, if it is kept for a script.
    pub fn heard(&self) -> Option<&ScriptReply> {
        self.heard.as_deref()
    }

    /// Parses bytes: those that the last call left, and new ones. `to_head` if the reply has only a
    /// head.
    pub fn take(&mut self, input: &[u8], to_head: bool) -> Result<BufferSearch, Invalid> {
        let mut at = 0;
        loop {
            match &mut self.expect {
                ReplyState::Head => {
                    let parsed = self.parser.parse(&mut self.head, &input[at..]);
                    let Some(length) = parsed.or(Err(Invalid))? else {
                        return if input.len() - at < HEAD_MAX {
                            Ok(BufferSearch::More(at))
                        } else {
                            Err(Invalid)
                        };
                    };
                    self.begin_body(&input[at..], to_head)?;
                    at += length;
                    self.reset_head();
                }
                ReplyState::Echo(done) => {
                    let left = &self.echo.as_deref().unwrap_or_default()[*done..];
                    let size = left.len().min(input.len() - at);
                    if input[at..at + size] != left[..size] {
                        return Err(Invalid);
                    }
                    *done += size;
                    let is_complete = size == left.len();
                    at += size;
                    return Ok(if is_complete {
                        self.complete(at)
                    } else {
                        BufferSearch::More(at)
                    });
                }
                ReplyState::Length(left) => {
                    let size = (*left).min((input.len() - at) as u64) as usize;
                    *left -= size as u64;
                    let is_complete = *left == 0;
                    self.hear(&input[at..at + size]);
                    at += size;
                    return Ok(if is_complete {
                        self.complete(at)
                    } else {
                        BufferSearch::More(at)
                    });
                }
                ReplyState::Chunked(decoder) => {
                    match decoder.decode(&input[at..]).or(Err(Invalid))? {
                        ChunkDecoded::Data(range) => {
                            self.hear(&input[at + range.start..at + range.end]);
                            at += range.end;
                        }
                        ChunkDecoded::End(end) => return Ok(self.complete(at + end)),
                        ChunkDecoded::More | ChunkDecoded::Trailers(_) => {
                            return Ok(BufferSearch::More(input.len()));
                        }
                    }
                }
                ReplyState::Close => {
                    self.hear(&input[at..]);
                    return Ok(BufferSearch::More(input.len()));
                }
            }
        }
    }

    /// Called at the end of the connection. Returns the reply that it completes, if any.
    pub fn end(&mut self) -> Option<CompleteReply> {
        matches!(self.expect, ReplyState::Close)
            .then_some(CompleteReply { keep: false, ..self.reply })
    }

    /// Whether part of a reply was received. `left` is the number of bytes that
    /// [`take`](Self::take) has left.
    pub fn is_within(&self, left: usize) -> bool {
        left > 0
            || match self.expect {
                ReplyState::Head => false,
                ReplyState::Echo(done) => done > 0,
                _ => true,
            }
    }

    fn begin_body(&mut self, head: &[u8], to_head: bool) -> Result<(), Invalid> {
        let status = self.head.status;
        if (100..200).contains(&status) && status != 101 {
            return Ok(()); // The reply is still to come.
        }
        let body = ReplyBody::of(&self.head, head, to_head).or(Err(Invalid))?;
        self.reply = CompleteReply { status, keep: status != 101 && self.keeps(head) };
        if let Some(heard) = &mut self.heard {
            heard.body.clear();
            let fields = self.head.fields.iter();
            let part = |slice: wire::Slice| slice.of(head).to_vec();
            heard.fields = fields.map(|field| (part(field.name), part(field.value))).collect();
        }
        self.expect = match body {
            ReplyBody::None => ReplyState::Length(0),
            ReplyBody::Length(length) => ReplyState::Length(length),
            ReplyBody::Chunked => ReplyState::Chunked(ChunkedDecoder::default()),
            ReplyBody::Close => ReplyState::Close,
        };
        Ok(())
    }

    /// Whether the connection is kept after this reply; with HTTP/1.0, only if the server says so
    /// (RFC 9112, section 9.3).
    fn keeps(&self, bytes: &[u8]) -> bool {
        let says = |field: &ReplyField| {
            field.id == ReplyName::Connection
                && field.value.of(bytes).eq_ignore_ascii_case(b"keep-alive")
        };
        let is_old = self.parser.version == Version::HTTP_10;
        !self.parser.closes(&self.head, bytes) || is_old && self.head.fields.iter().any(says)
    }

    fn hear(&mut self, body: &[u8]) {
        if let Some(heard) = &mut self.heard {
            heard.body.extend_from_slice(body);
        }
    }

    fn complete(&mut self, at: usize) -> BufferSearch {
        self.begin_reply();
        BufferSearch::Reply(at, self.reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_equals_the_request() {
        let mut replies = Replies::default();
        replies.expect_echo(b"message");
        let reply = CompleteReply { status: 0, keep: true };
        assert_eq!(replies.take(b"mess", false), Ok(BufferSearch::More(4)));
        assert!(replies.is_within(0));
        assert_eq!(replies.take(b"agemes", false), Ok(BufferSearch::Reply(3, reply)));
        assert!(!replies.is_within(0));
        assert_eq!(replies.take(b"mes", false), Ok(BufferSearch::More(3)));
        assert_eq!(replies.take(b"Sage", false), Err(Invalid));
    }
}
