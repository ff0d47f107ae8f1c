//! Why a connection serves no request after an exchange.

use std::fmt;

/// Why a connection serves no request after an exchange. In HTTP/1 that closes it; a protocol with
/// streams need not care about what is wrong with one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// There is no head that could be understood.
    NoRequest,
    /// The client wants no other.
    Client,
    /// `keepalive_timeout`, `keepalive_requests` and the like.
    Limit,
    /// The status of the reply: what follows such a request may be anything.
    Status,
    /// The end of the request's body is not known, or nobody reads up to it.
    RequestBody,
    /// The end of the reply's body is that of the connection.
    ReplyBody,
    /// The connection is no longer HTTP's.
    Switched,
    /// The worker is about to stop, or no longer has the listening socket.
    Leaving,
    /// The exchange is over, and the connection has gone on without it.
    Over,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRequest => "the request is invalid",
            Self::Client => "the client asked for it",
            Self::Limit => "keepalive limits",
            Self::Status => "the status of the response",
            Self::RequestBody => "the request body was not read to its end",
            Self::ReplyBody => "the response has no length",
            Self::Switched => "the protocol was switched",
            Self::Leaving => "the worker is shutting down",
            Self::Over => "the request is done",
        })
    }
}
