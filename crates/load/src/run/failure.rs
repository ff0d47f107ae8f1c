//! What can go wrong with a request, and how it is counted.

use std::io::{self, ErrorKind};

use crate::results::Errors;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunFailure {
    Refused,
    Unreachable,
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

    /// A request that could not be written.
    pub(super) fn of_write(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::Reset,
            _ => Self::Write,
        }
    }

    /// Whether there is no server to connect to.
    pub(super) fn is_of_connect(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable)
    }

    /// Counts it for so many requests.
    pub(super) fn count(self, requests: u64, errors: &mut Errors) {
        let count = match self {
            Self::Refused => &mut errors.refused,
            Self::Unreachable => &mut errors.unreachable,
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
