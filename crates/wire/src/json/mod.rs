//! JSON (RFC 8259): documents read whole and strictly, and texts written as JSON strings.
//!
//! The reader is for small documents: what an administrator sends to an API, or keeps in a file. It
//! refuses whatever readers are known to understand differently: two members with the same name,
//! escapes of half a character, bytes that are not UTF-8, anything behind the end. It allocates
//! only what it returns, which [`JsonLimits`] bound; a text without escapes is a slice of the
//! input.
//!
//! Deliberately absent: documents in pieces, comments, and floating point: a number keeps its text.

mod error;
mod limits;
mod parser;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub use error::{JsonError, JsonPosition, JsonProblem, position};
pub use limits::JsonLimits;
pub use parser::parse;
pub use value::{JsonMember, JsonNumber, JsonObject, JsonValue};
pub use write::write_text;
