//! Errors in the head of a reply.

use crate::Slice;
use crate::reply::{ReplyField, ReplyFieldError};

/// Why a head is refused. nginx logs each at `error`, and asks the next server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// The input is not a status line.
    NotHttp,
    /// A byte that may not be there follows this part of a line.
    InvalidField(Slice, u8),
    /// A second line of what decides the body's length.
    DuplicateField {
        /// The line.
        field: ReplyField,
        /// The one before.
        previous: ReplyField,
    },
    /// `Content-Length` is no number.
    InvalidContentLength(ReplyField),
    /// Both ways to say how long the body is.
    LengthAndCoding,
    /// A coding that is not `chunked`.
    UnknownCoding(Slice),
    /// More than [`FIELDS_MAX`](crate::reply::FIELDS_MAX) lines.
    TooManyFields,
}

impl From<ReplyFieldError> for ReplyError {
    fn from(error: ReplyFieldError) -> Self {
        match error {
            ReplyFieldError::Invalid(line, byte) => Self::InvalidField(line, byte),
            ReplyFieldError::TooMany => Self::TooManyFields,
        }
    }
}
