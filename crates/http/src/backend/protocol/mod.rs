//! What a family of backends has of its own: how a request is framed, and what the bytes of a reply
//! mean.
//!
//! A [`Protocol`] knows no socket, no clock and no exchange: `backend` writes what it frames, hands
//! it what was read, and does everything that all families have in common. There is one value for
//! each server that is asked; nothing outside an implementation may depend on which family it is.

pub(crate) mod cgi;
pub(crate) mod fastcgi;
pub(crate) mod http1;
pub(crate) mod memcached;

use std::borrow::Cow;

use observe::Level;
use wire::reply::ReplyHead;

use crate::exchange::{BodyLog, Fields};

/// One request and its reply on a connection of their own, as the protocol has them.
pub(crate) trait Protocol: ReplyReader {
    /// Frames the next piece of the request's body, of which `available` bytes are there.
    /// `is_last`: nothing follows them. A frame may take fewer; then it is asked for the rest. It
    /// is asked at least once, and not after a frame that took all of the last bytes.
    fn frame(&mut self, available: u64, is_last: bool) -> Frame;
}

/// What the bytes of one reply mean.
pub(crate) trait ReplyReader: 'static {
    /// Reads on in the head of the reply. `input` is what came so far, new bytes at its end; what
    /// stands around the head is taken out in place, so that offsets in `head` are into `input`. An
    /// error says in nginx's words why this is no reply.
    fn head(&mut self, input: &mut Vec<u8>, head: &mut ReplyHead) -> Result<HeadEvent, Malformed>;

    /// Bytes of framing, such as FastCGI's record headers, that `head` left in the buffer.
    fn envelope_bytes(&self) -> usize {
        0
    }

    /// Reads on in the body: what stands around it is taken out of `buffer[start..]` in place. That
    /// is first what [`head`](Self::head) left behind the head, then what comes. A reply without a
    /// body asks only for the former, and whether the connection can be reused after it.
    fn body(&mut self, buffer: &mut [u8], start: usize) -> Result<Taken, MalformedBody>;

    /// Whether all of the reply has come.
    fn is_ended(&self) -> bool;

    /// Whether the reply may end where the connection does.
    fn ends_at_close(&self) -> bool {
        self.is_ended()
    }

    /// How many bytes of the body surely follow.
    fn body_left(&self) -> u64 {
        0
    }

    /// Whether everything that came is complete, so that a client may be waiting for it.
    fn is_between_pieces(&self) -> bool {
        false
    }

    /// Whether the connection may serve another request, as far as this one and its reply say.
    fn may_reuse(&self) -> bool;

    /// Whether the connection speaks another protocol after the head.
    fn switches(&self) -> bool {
        false
    }
}

/// What a protocol has to know of a request before its first byte, kept for every server asked.
pub(crate) trait Start: 'static {
    /// The protocol that is spoken.
    type Protocol: Protocol;

    /// What stands before the server's address in log lines: `http://`.
    const SCHEMA: &'static str;

    /// The same over TLS.
    const SECURE_SCHEMA: &'static str = Self::SCHEMA;

    /// The protocol as it is before the first byte.
    fn start(&self) -> Self::Protocol;
}

/// Why what came is no reply, in nginx's words.
pub(crate) type Malformed = Cow<'static, str>;

/// A body that cannot be read on. What these bytes held of it is lost.
#[derive(Debug)]
pub(crate) struct MalformedBody {
    pub(crate) reason: Malformed,
    /// What comes before it in the error log.
    pub(crate) messages: Vec<BackendMessage>,
}

impl From<Malformed> for MalformedBody {
    fn from(reason: Malformed) -> Self {
        Self { reason, messages: Vec::new() }
    }
}

/// A message for the error log.
#[derive(Debug)]
pub(crate) struct BackendMessage {
    pub(crate) level: Level,
    pub(crate) text: Cow<'static, str>,
}

impl BackendMessage {
    pub(super) fn write(&self, log: &mut dyn BodyLog) {
        log.note(self.level, format_args!("{}", self.text));
    }
}

/// What stands before or after a piece of a body.
#[derive(Clone, Copy)]
pub(super) struct Envelope<const MAX: usize> {
    bytes: [u8; MAX],
    length: u8,
}

/// What stands before a piece: the line of the largest chunk, or the header of a record.
const BEFORE_MAX: usize = 18;
/// What stands after a piece: padding and the header of an empty record, or the end of a body.
const AFTER_MAX: usize = 15;

impl<const MAX: usize> Envelope<MAX> {
    const EMPTY: Self = Self { bytes: [0; MAX], length: 0 };

    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; MAX];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, length: text.len() as u8 }
    }
}

impl<const MAX: usize> AsRef<[u8]> for Envelope<MAX> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A piece of a request's body, and what is sent around it.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(super) before: Envelope<BEFORE_MAX>,
    /// Bytes of the body.
    pub(super) length: u64,
    pub(super) after: Envelope<AFTER_MAX>,
}

impl Frame {
    /// Nothing stands around it.
    pub(crate) fn bare(length: u64) -> Self {
        Self { before: Envelope::EMPTY, length, after: Envelope::EMPTY }
    }

    /// `before` has at most 18 bytes, `after` at most 15.
    pub(crate) fn new(before: &[u8], length: u64, after: &[u8]) -> Self {
        Self { before: Envelope::new(before), length, after: Envelope::new(after) }
    }

    /// All bytes that are sent.
    pub(super) fn total(&self) -> u64 {
        self.length + u64::from(self.before.length) + u64::from(self.after.length)
    }
}

/// What was found in the input before the body.
pub(crate) enum HeadEvent {
    /// Not enough.
    Partial,
    /// An interim reply of so many bytes; another head follows.
    Interim(usize),
    /// Something for the error log. The same input is to be looked at again.
    Log(BackendMessage),
    /// The head, of so many bytes.
    Complete {
        /// Where it ends in the input.
        bytes: usize,
        /// What follows it.
        body: ReplyLength,
    },
}

/// How long the body of a reply is, as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyLength {
    /// Nothing more comes, not even what would end a body.
    None,
    /// So many bytes.
    Known(u64),
    /// It ends by itself, or with the connection.
    Unknown,
}

/// What was found of a body.
#[derive(Default)]
pub(crate) struct Taken {
    /// Where the body ends in the buffer now.
    pub(crate) end: usize,
    pub(crate) messages: Vec<BackendMessage>,
    /// The fields after the body.
    pub(crate) trailers: Option<Fields>,
    /// Why the server has ended the body before its end, in nginx's words. The part that came is
    /// as good as any other; nothing is read after it.
    pub(crate) cut_short: Option<Malformed>,
}

impl Taken {
    /// Nothing but a part of the body.
    pub(crate) fn up_to(end: usize) -> Self {
        Self { end, ..Self::default() }
    }
}
