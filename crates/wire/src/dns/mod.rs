//! DNS (RFC 1035) as one who asks needs it: a query is written, its response believed or refused.
//!
//! Nothing in a response counts that was not asked for: id and question must be those of the query,
//! and only records at the end of the chain of aliases that starts at the asked name are taken.
//! Authority and additional sections are not looked at. Deliberately absent: EDNS, since what
//! outgrows 512 bytes comes over TCP; and answering, timing and remembering, which are a
//! resolver's.

mod error;
mod name;
mod question;
mod response;
#[cfg(test)]
mod tests;

pub use error::{Rcode, ResponseError};
pub use name::{InvalidName, LABEL_BYTES_MAX, NAME_BYTES_MAX, Name, NameError, POINTERS_MAX};
pub use question::{Kind, QUERY_BYTES_MAX, Question};
pub use response::{ALIASES_MAX, Answer, Record, Response, Service, id_of, parse};

/// Bytes of a message before its question.
const HEADER_BYTES: usize = 12;
/// The class of the Internet; nobody asks for another.
const CLASS_IN: u16 = 1;

/// Reads two bytes.
fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
