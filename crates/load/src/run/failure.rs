//! Failures of requests, and how they are counted.

use std::io::{self, ErrorKind};
use std::time::Duration;

use crate::results::Errors;

/// The pause of a client after a failed connection, to spare the server and the CPU.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

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
    /// The failure of opening a connection.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::ConnectionReset => Self::Reset,
            _ => Self::Unreachable,
        }
    }

    /// The failure of opening a connection or of its handshake.
    pub(super) fn of_secure_connect(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::Other => Self::Handshake,
            _ => Self::of_connect(error),
        }
    }

    /// The failure of writing a request.
    pub(super) fn of_write(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::Reset,
            _ => Self::Write,
        }
    }

    pub(super) fn is_of_connect(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable | Self::Handshake)
    }

    /// Counts it for a number of requests.
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

/// Pauses if a connection failed.
pub(super) async fn rest_after(failure: RunFailure) {
    if failure.is_of_connect() {
        net::sleep(CONNECT_PAUSE).await;
    }
}
