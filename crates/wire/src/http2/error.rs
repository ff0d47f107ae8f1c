//! Errors that end a stream or a connection.

use super::limits::Http2Limit;

/// An error code (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Http2Code(pub u32);

impl Http2Code {
    /// Not an error.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// This end failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than a window allows, or a window grew too large.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame for a stream that accepts none.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not processed at all.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(8);
    /// A header block that cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer causes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
    /// The request has to be sent with HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(13);
}

/// Why a connection is over. The GOAWAY frame is already in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Error {
    /// The code in GOAWAY.
    pub code: Http2Code,
    /// The peer's fault, in nginx's words, to be read after "client " or "server ".
    pub what: &'static str,
    /// The limit that the peer exceeded, if that is the reason.
    pub limit: Option<Http2Limit>,
}

impl Http2Error {
    pub(super) const fn new(code: Http2Code, what: &'static str) -> Self {
        Self { code, what, limit: None }
    }

    pub(super) const fn protocol(what: &'static str) -> Self {
        Self::new(Http2Code::PROTOCOL_ERROR, what)
    }

    pub(super) const fn size(what: &'static str) -> Self {
        Self::new(Http2Code::FRAME_SIZE_ERROR, what)
    }
}

impl From<Http2Limit> for Http2Error {
    fn from(limit: Http2Limit) -> Self {
        Self { limit: Some(limit), ..Self::new(Http2Code::ENHANCE_YOUR_CALM, limit.what()) }
    }
}
