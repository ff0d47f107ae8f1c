//! Why a stream fails.

use std::io;

use wire::http2::Http2Code;

#[derive(Debug)]
pub enum StreamFailure {
    /// The server has not processed the request: it refused the stream, or its connection ended
    /// before it could. Any request may be sent again.
    Unprocessed,
    /// The server has not processed the request because it ends the connection in good order. Any
    /// request may be sent again.
    GoneAway,
    /// The server has reset the stream. With NO_ERROR after a complete reply, it needs no more of
    /// the request.
    Reset(Http2Code),
    /// The reply is malformed. Completes a sentence that begins with "server ".
    Malformed(&'static str),
    /// The server has closed the connection.
    Closed,
    /// The server has broken the protocol, or exceeded a limit of the connection, which has ended.
    /// Completes a sentence that begins with "server ".
    Protocol(&'static str),
    /// Reading or writing has failed, or the server did not answer in time.
    Connection(io::Error),
}

impl StreamFailure {
    /// The failure of a stream that the server has reset.
    pub(crate) fn of_reset(code: Http2Code, has_reply: bool) -> Self {
        match code {
            Http2Code::REFUSED_STREAM if !has_reply => Self::Unprocessed,
            code => Self::Reset(code),
        }
    }

    /// The failure of a stream that was reset with this code because of the server's frames.
    pub(crate) fn of_provoked(code: Http2Code) -> Self {
        Self::Malformed(match code {
            Http2Code::FLOW_CONTROL_ERROR => "violated flow control",
            Http2Code::STREAM_CLOSED => "sent frames after the end of the reply",
            _ => "sent body data before the head",
        })
    }
}

/// A copy of an error: its number, or its kind and text.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl Clone for StreamFailure {
    fn clone(&self) -> Self {
        match self {
            Self::Unprocessed => Self::Unprocessed,
            Self::GoneAway => Self::GoneAway,
            Self::Reset(code) => Self::Reset(*code),
            Self::Malformed(what) => Self::Malformed(what),
            Self::Closed => Self::Closed,
            Self::Protocol(what) => Self::Protocol(what),
            Self::Connection(error) => Self::Connection(copy_of(error)),
        }
    }
}
