//! Replies found in what a server sends: a machine without a socket.
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

/// A complete reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteReply {
    /// Its status; 0 where there is none.
    pub status: u16,
    /// Whether the connection goes on after it.
    pub keep: bool,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSearch {
    /// Nothing complete: so many bytes are done with, and more are to come.
    More(usize),
    /// A reply that ends so far into the bytes.
    Reply(usize, CompleteReply),
}

/// What came is not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// Bytes of a reply's head at most.
pub const HEAD_MAX: usize = 64 * 1024;

/// The replies of one connection.
#[derive(Debug)]
pub struct Replies {
    head: ReplyHead,
    parser: ResponseHeadParser,
    expect: ReplyState,
    /// What comes back for each request, where it is not HTTP.
    echo: Option<Box<[u8]>>,
    reply: CompleteReply,
    /// What a script is told of the reply.
    heard: Option<Box<ScriptReply>>,
}

/// The machine for HTTP.
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

/// A reply as a script is told of it.
#[derive(Debug, Default)]
pub struct ScriptReply {
    /// The header fields.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

#[derive(Debug)]
enum ReplyState {
    Head,
    Length(u64),
    Chunked(ChunkedDecoder),
    Close,
    /// The rest of what was sent, of which so many bytes have come back.
    Echo(usize),
}

impl Replies {
    /// Whether somebody wants to know what replies are.
    pub fn listen(&mut self, listens: bool) {
        if listens != self.heard.is_some() {
            self.heard = listens.then(Box::default);
        }
    }

    /// Expects these bytes back for each request, instead of HTTP.
    pub fn expect_echo(&mut self, message: &[u8]) {
        if self.echo.as_deref() != Some(message) {
            self.echo = Some(message.into());
        }
        self.begin_reply();
    }

    /// Begins anew, on a new connection.
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

    /// The last complete reply, where somebody listens.
    pub fn heard(&self) -> Option<&ScriptReply> {
        self.heard.as_deref()
    }

    /// Looks at bytes: those that the last call left, and those that came since. `to_head`: a head
    /// is all that the reply has.
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

    /// What the connection's end means: the end of a reply that has no other, or a lack of one.
    pub fn end(&mut self) -> Option<CompleteReply> {
        matches!(self.expect, ReplyState::Close)
            .then_some(CompleteReply { keep: false, ..self.reply })
    }

    /// Whether part of a reply has come. `left`: bytes that [`take`](Self::take) did not take.
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
        self.reply = CompleteReply { status, keep: status != 101 && self.goes_on(head) };
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

    /// Whether the connection does after this reply. That of HTTP/1.0 does where the server says so
    /// (RFC 9112, section 9.3).
    fn goes_on(&self, bytes: &[u8]) -> bool {
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
    fn what_comes_back_is_what_was_sent() {
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
