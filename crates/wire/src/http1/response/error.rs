//! Errors in the head of a reply.

use crate::Slice;
use crate::reply::{ReplyField, ReplyFieldError};

/// Why a head is refused. nginx logs each at `error`, and tries the next server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// The input is not a status line.
    NotHttp,
    /// An invalid byte follows this part of a line.
    InvalidField(Slice, u8),
    /// A second line of a field that determines the body's length.
    DuplicateField {
        field: ReplyField,
        /// The earlier line.
        previous: ReplyField,
    },
    /// `Content-Length` is not a number.
    InvalidContentLength(ReplyField),
    /// Both `Content-Length` and `Transfer-Encoding`.
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
