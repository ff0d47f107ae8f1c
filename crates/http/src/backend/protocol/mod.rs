//! The protocols of the families of backends: framing of requests, parsing of replies.
//!
//! A [`Protocol`] knows no socket, no clock and no exchange: `backend` writes its frames, gives it
//! the bytes read, and does everything that all families share. Each attempt has a value of its
//! own; nothing outside an implementation may depend on the family.

pub(crate) mod cgi;
pub(crate) mod fastcgi;
pub(crate) mod http1;
pub(crate) mod memcached;
pub(crate) mod stored;

use std::borrow::Cow;

use observe::Level;
use wire::reply::ReplyHead;

use crate::exchange::{BodyLog, Fields};

/// The protocol of one request and its reply on a connection of their own.
pub(crate) trait Protocol: ReplyReader {
    /// Frames the next piece of the request's body, of which `available` bytes have arrived.
    /// `is_last`: they end the body. A frame may take fewer bytes, and another call frames the
    /// rest. Called at least once, and not after a frame that took all of the last bytes.
    fn frame(&mut self, available: u64, is_last: bool) -> Frame;
}

pub(crate) trait ReplyReader: 'static {
    /// Parses more of the head. `input` has all bytes so far, new ones at its end; framing is
    /// removed in place, so that offsets in `head` are into `input`. An error is nginx's message
    /// about the reply.
    fn head(
        &mut self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
    ) -> Result<HeadEvent, ProtocolError>;

    /// Bytes of framing, such as FastCGI's record headers, that `head` left in the buffer.
    fn envelope_bytes(&self) -> usize {
        0
    }

    /// Parses more of the body: removes framing from `buffer[start..]` in place. The first call
    /// gets the bytes that [`head`](Self::head) left behind the head, further calls the bytes read
    /// then. For a reply without a body, there is only the first call, which decides whether the
    /// connection can be reused.
    fn body(&mut self, buffer: &mut [u8], start: usize) -> DecodedBody;

    fn is_ended(&self) -> bool;

    /// Whether the end of the connection may end the reply.
    fn ends_at_close(&self) -> bool {
        self.is_ended()
    }

    /// The number of bytes of the body that must follow.
    fn body_left(&self) -> u64 {
        0
    }

    /// Whether all pieces so far are complete, so that the client may be waiting for them.
    fn is_between_pieces(&self) -> bool {
        false
    }

    /// Whether this request and its reply allow another request on the connection.
    fn may_reuse(&self) -> bool;

    /// Whether the connection speaks another protocol after the head.
    fn switches(&self) -> bool {
        false
    }
}

/// Properties of a request from which each attempt gets its protocol value.
pub(crate) trait Start: 'static {
    type Protocol: Protocol;

    /// The scheme before the server's address in log lines: `http://`.
    const SCHEMA: &'static str;

    const SECURE_SCHEMA: &'static str = Self::SCHEMA;

    /// The protocol before the first byte.
    fn start(&self) -> Self::Protocol;
}

/// nginx's message about an invalid reply.
pub(crate) type ProtocolError = Cow<'static, str>;

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

/// The bytes before or after a piece of a body.
#[derive(Clone, Copy)]
pub(super) struct Envelope<const MAX: usize> {
    bytes: [u8; MAX],
    length: u8,
}

/// The most bytes before a piece: the line of the largest chunk, or the header of a record.
const BEFORE_MAX: usize = 18;
/// The most bytes after a piece: padding and the header of an empty record, or the end of a body.
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

/// A piece of a request's body, and its framing.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(super) before: Envelope<BEFORE_MAX>,
    /// Bytes of the body.
    pub(super) length: u64,
    pub(super) after: Envelope<AFTER_MAX>,
}

impl Frame {
    /// A piece without framing.
    pub(crate) fn bare(length: u64) -> Self {
        Self { before: Envelope::EMPTY, length, after: Envelope::EMPTY }
    }

    /// `before` has at most 18 bytes, `after` at most 15.
    pub(crate) fn new(before: &[u8], length: u64, after: &[u8]) -> Self {
        Self { before: Envelope::new(before), length, after: Envelope::new(after) }
    }

    /// The length on the wire, framing included.
    pub(super) fn total(&self) -> u64 {
        self.length + u64::from(self.before.length) + u64::from(self.after.length)
    }
}

/// The result of parsing a head.
pub(crate) enum HeadEvent {
    Partial,
    /// An interim reply of this many bytes; another head follows.
    Interim(usize),
    /// A message for the error log. The same input is to be parsed again.
    Log(BackendMessage),
    Complete {
        /// Its length in the input.
        bytes: usize,
        body: ReplyLength,
    },
}

/// The length of a reply's body according to its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyLength {
    /// No body, not even the end of one.
    None,
    Known(u64),
    /// It ends by itself, or with the connection.
    Unknown,
}

/// The part of a body that was found in a buffer.
#[derive(Default)]
pub(crate) struct DecodedBody {
    /// The end of the part in the buffer.
    pub(crate) end: usize,
    pub(crate) messages: Vec<BackendMessage>,
    pub(crate) trailers: Option<Fields>,
    /// Why nothing more of the body can be read, although it is not complete.
    pub(crate) error: Option<ProtocolError>,
    /// Whether the error is the server's decision to end the body early, so that the part received
    /// is valid.
    pub(crate) is_cut_short: bool,
}

impl DecodedBody {
    /// A part of the body, and nothing else.
    pub(crate) fn up_to(end: usize) -> Self {
        Self { end, ..Self::default() }
    }

    /// An invalid body. The buffer's bytes from `start` on are lost.
    pub(crate) fn invalid(start: usize, error: ProtocolError) -> Self {
        Self { error: Some(error), ..Self::up_to(start) }
    }
}
