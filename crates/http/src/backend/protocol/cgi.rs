//! Replies in CGI's form, which SCGI and uwsgi send bare and FastCGI in records.

use observe::{Level, Text};
use wire::cgi::{CgiHeadError, CgiHeadParser};
use wire::http1::response::ReplyBody;
use wire::reply::{ReplyFieldError, ReplyHead};

use super::{
    BackendMessage, DecodedBody, Frame, HeadEvent, Protocol, ProtocolError, ReplyLength,
    ReplyReader, http1,
};

/// A request whose body follows its variables unframed, and its reply, which ends with the
/// connection.
pub(crate) struct Cgi {
    /// Whether it is a HEAD request: the reply has no body.
    to_head: bool,
    parser: CgiHeadParser,
    rest: CgiRest,
    is_switched: bool,
}

/// The rest of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CgiRest {
    Bytes(u64),
    /// Everything up to the end of the connection.
    Unknown,
    /// No body: further bytes are ignored.
    Ignored,
}

impl Cgi {
    pub(crate) fn new(to_head: bool) -> Self {
        let parser = CgiHeadParser::with_status_line();
        Self { to_head, parser, rest: CgiRest::Unknown, is_switched: false }
    }
}

impl Protocol for Cgi {
    fn frame(&mut self, available: u64, _is_last: bool) -> Frame {
        Frame::bare(available)
    }
}

impl ReplyReader for Cgi {
    fn head(
        &mut self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
    ) -> Result<HeadEvent, ProtocolError> {
        let parsed = self.parser.parse(head, input).map_err(|error| describe(error, input))?;
        let Some(bytes) = parsed else { return Ok(HeadEvent::Partial) };
        let body;
        (self.rest, body) = CgiRest::of(head, input, self.to_head)?;
        self.is_switched = head.status == 101;
        Ok(HeadEvent::Complete { bytes, body })
    }

    fn body(&mut self, buffer: &mut [u8], start: usize) -> DecodedBody {
        let received = buffer.len() - start;
        let (taken, is_surplus) = self.rest.take(received);
        let messages = is_surplus.then(more_than_length).into_iter().collect();
        DecodedBody { messages, ..DecodedBody::up_to(start + taken) }
    }

    fn is_ended(&self) -> bool {
        matches!(self.rest, CgiRest::Bytes(0) | CgiRest::Ignored)
    }

    fn ends_at_close(&self) -> bool {
        self.rest.left() == 0
    }

    fn body_left(&self) -> u64 {
        self.rest.left()
    }

    /// Applications of SCGI and uwsgi serve one request per connection.
    fn may_reuse(&self) -> bool {
        false
    }

    fn switches(&self) -> bool {
        self.is_switched
    }
}

impl CgiRest {
    /// The body after a complete head, and its length for the client.
    pub(super) fn of(
        head: &ReplyHead,
        input: &[u8],
        to_head: bool,
    ) -> Result<(Self, ReplyLength), ProtocolError> {
        let body = ReplyBody::of(head, input, to_head);
        Ok(match body.map_err(|error| http1::describe(error, input))? {
            ReplyBody::None => (Self::Ignored, ReplyLength::None),
            ReplyBody::Length(length) => (Self::Bytes(length), ReplyLength::Known(length)),
            // CGI has no transfer codings; nginx passes the bytes on unchanged.
            ReplyBody::Chunked | ReplyBody::Close => (Self::Unknown, ReplyLength::Unknown),
        })
    }

    /// How many of the received bytes belong to the body, and whether the others are an error.
    pub(super) fn take(&mut self, received: usize) -> (usize, bool) {
        match self {
            Self::Unknown => (received, false),
            Self::Ignored => (0, false),
            Self::Bytes(left) => {
                let taken = usize::try_from(*left).map_or(received, |left| left.min(received));
                *left -= taken as u64;
                (taken, taken < received)
            }
        }
    }

    /// The number of bytes that must follow.
    pub(super) fn left(self) -> u64 {
        match self {
            Self::Bytes(left) => left,
            Self::Unknown | Self::Ignored => 0,
        }
    }
}

/// The message for bytes beyond the announced length.
pub(super) fn more_than_length() -> BackendMessage {
    let text = "upstream sent more data than specified in \"Content-Length\" header";
    BackendMessage { level: Level::Warn, text: text.into() }
}

/// nginx's message for an invalid head.
pub(super) fn describe(error: CgiHeadError, input: &[u8]) -> ProtocolError {
    match error {
        CgiHeadError::Field(ReplyFieldError::Invalid(slice, byte)) => {
            let text = Text(slice.of(input));
            format!("upstream sent invalid header: \"{text}\\x{byte:02x}...\"").into()
        }
        CgiHeadError::Field(ReplyFieldError::TooMany) => {
            "upstream sent too many header lines".into()
        }
        CgiHeadError::Status(slice) => {
            format!("upstream sent invalid status \"{}\"", Text(slice.of(input))).into()
        }
    }
}
