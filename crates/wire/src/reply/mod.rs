//! The head of a reply of any protocol: a status and header lines, as offsets into bytes that the
//! caller owns.
//!
//! [`FieldParser`] reads header lines in the form of HTTP/1 and CGI. Like nginx, it is lenient
//! where that is harmless, because real backends deviate from the standards: a lone LF ends a line,
//! and a line may lack its colon. It reads no byte twice.

mod field;
mod list;
mod name;
mod parser;

use crate::Slice;
pub use list::ReplyFieldList;
pub use name::ReplyName;
pub use parser::FieldParser;

/// The most fields of a head, and of trailers.
pub const FIELDS_MAX: usize = 1000;

/// A header line of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyField {
    /// The name as sent.
    pub name: Slice,
    /// The value without spaces around it.
    pub value: Slice,
    /// The name as a number.
    pub id: ReplyName,
}

/// A reply's head, as far as it was read.
#[derive(Debug, Default)]
pub struct ReplyHead {
    /// The status; 0 before it is known.
    pub status: u16,
    /// Status and reason as sent: `200 OK`.
    pub status_line: Slice,
    /// The header lines, in order.
    pub fields: ReplyFieldList,
}

impl ReplyHead {
    /// Clears the reply and keeps the memory of `fields`.
    pub fn reset(&mut self) {
        self.status = 0;
        self.status_line = Slice::default();
        self.fields.clear();
    }

    /// The first line of that name. For [`ReplyName::Other`] compare names in `fields`.
    #[inline]
    pub fn field(&self, id: ReplyName) -> Option<&ReplyField> {
        let is_there = id == ReplyName::Other || self.fields.has_any(id.bit());
        is_there.then(|| self.fields.iter().find(|field| field.id == id))?
    }
}

/// Why header lines are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyFieldError {
    /// An invalid byte follows this part of a line.
    Invalid(Slice, u8),
    /// More than [`FIELDS_MAX`] lines.
    TooMany,
}
