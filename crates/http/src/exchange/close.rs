//! Why a connection serves no request after an exchange.

use std::fmt;

/// Why a connection serves no request after an exchange. In HTTP/1 that closes it; a protocol with
/// streams may ignore a reason that concerns one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The request's head is invalid.
    NoRequest,
    /// The client does not want another.
    Client,
    /// `keepalive_timeout`, `keepalive_requests` and the like.
    Limit,
    /// The status of the reply: the bytes after such a request are unpredictable.
    Status,
    /// The end of the request's body is unknown, or the body is not read to its end.
    RequestBody,
    /// The reply's body ends with the connection.
    ReplyBody,
    /// The connection has switched to another protocol.
    Switched,
    /// The worker is stopping, or no longer has the listening socket.
    Leaving,
    /// Clients are to go elsewhere, although the server goes on for now.
    Draining,
    /// The exchange has ended, and the connection has continued without it.
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
            Self::Draining => "the server is draining",
            Self::Over => "the request is done",
        })
    }
}
