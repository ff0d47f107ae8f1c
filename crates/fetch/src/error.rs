//! Why a request has no reply: what went wrong, in which step, and where.

use std::fmt;
use std::io;

use net::tls::CertificateFault;
use observe::Errno;
use upstream::resolver::ResolveError;

#[derive(Debug)]
pub struct FetchError {
    pub step: FetchStep,
    /// The origin, and its address if a name was looked up.
    pub peer: String,
    pub fault: FetchFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchStep {
    Preparing,
    Resolving,
    Connecting,
    /// The TLS handshake.
    Securing,
    Sending,
    /// The request was sent, and no byte of the reply has arrived.
    Waiting,
    Reading,
}

#[derive(Debug)]
pub enum FetchFault {
    /// The request cannot be sent as it is.
    InvalidRequest(&'static str),
    /// The origin has a name, and there is no resolver to look it up.
    NoResolver,
    Unresolved(ResolveError),
    /// The connection could not be opened or secured, or failed.
    Connection(io::Error),
    /// The peer closed the connection before the end of the reply.
    Closed,
    /// There was no connection after [`FetchLimits::connect_ms`](crate::FetchLimits::connect_ms).
    NotConnected(u64),
    /// No byte came or went for [`FetchLimits::silence_ms`](crate::FetchLimits::silence_ms).
    Silent(u64),
    /// [`FetchLimits::total_ms`](crate::FetchLimits::total_ms) was not enough.
    NotDone(u64),
    /// The head is larger than this number of bytes.
    TooLargeHead(usize),
    /// The body is larger than this number of bytes.
    TooLargeBody(usize),
    InvalidReply(String),
}

impl FetchFault {
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::NotConnected(_) | Self::Silent(_) | Self::NotDone(_))
    }
}

/// `no byte for 1000 ms while waiting for the reply of 127.0.0.1:80`
impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} while {} {}", self.fault, self.step, self.peer)
    }
}

impl std::error::Error for FetchError {}

impl fmt::Display for FetchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preparing => "preparing a request to",
            Self::Resolving => "resolving",
            Self::Connecting => "connecting to",
            Self::Securing => "securing the connection to",
            Self::Sending => "sending the request to",
            Self::Waiting => "waiting for the reply of",
            Self::Reading => "reading the reply of",
        })
    }
}

impl fmt::Display for FetchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidRequest(reason) => f.write_str(reason),
            Self::NoResolver => f.write_str("there is no resolver"),
            Self::Unresolved(error) => error.fmt(f),
            Self::Connection(error) => match CertificateFault::of(error) {
                Some(fault) => write!(f, "the certificate was refused ({fault})"),
                None => write!(f, "the connection failed{}", Errno(error)),
            },
            Self::Closed => f.write_str("the connection was closed early"),
            Self::NotConnected(ms) => write!(f, "no connection within {ms} ms"),
            Self::Silent(ms) => write!(f, "no byte for {ms} ms"),
            Self::NotDone(ms) => write!(f, "not done within {ms} ms"),
            Self::TooLargeHead(bytes) => write!(f, "a head of more than {bytes} bytes"),
            Self::TooLargeBody(bytes) => write!(f, "a body of more than {bytes} bytes"),
            Self::InvalidReply(reason) => f.write_str(reason),
        }
    }
}
