//! What can go wrong with a request, and how it is counted.

use std::io::{self, ErrorKind};

use crate::results::Errors;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunFailure {
    Refused,
    Unreachable,
    Handshake,
    Reset,
    Closed,
    Short,
    Invalid,
    Write,
    Timeout,
}

impl RunFailure {
    /// A connection that could not be opened.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::ConnectionReset => Self::Reset,
            _ => Self::Unreachable,
        }
    }

    /// A connection that could not be opened, or on which no keys were agreed on.
    pub(super) fn of_secure_connect(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::Other => Self::Handshake,
            _ => Self::of_connect(error),
        }
    }

    /// A request that could not be written.
    pub(super) fn of_write(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::Reset,
            _ => Self::Write,
        }
    }

    /// Whether there is no server to connect to.
    pub(super) fn is_of_connect(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable | Self::Handshake)
    }

    /// Counts it for so many requests.
    pub(super) fn count(self, requests: u64, errors: &mut Errors) {
        let count = match self {
            Self::Refused => &mut errors.refused,
            Self::Unreachable => &mut errors.unreachable,
            Self::Handshake => &mut errors.handshake,
            Self::Reset => &mut errors.reset,
            Self::Closed => &mut errors.closed,
            Self::Short => &mut errors.short,
            Self::Invalid => &mut errors.invalid,
            Self::Write => &mut errors.write,
            Self::Timeout => &mut errors.timeout,
        };
        *count += requests;
    }
}
