//! DNS (RFC 1035) for a client: writes a query, and accepts or rejects its response.
//!
//! Only requested data counts: id and question must be those of the query, and only records at the
//! end of the chain of aliases from the requested name are accepted. Authority and additional
//! sections are ignored. [`TxtUpdate`] changes records. Deliberately absent: EDNS, because longer
//! responses come over TCP; and answering, timing and caching, which belong to a resolver.

mod error;
mod key_file;
mod name;
mod question;
mod response;
#[cfg(test)]
mod tests;
mod update;

pub use error::{ALIASES_MAX, Rcode, ResponseError};
pub use key_file::KeyFileError;
pub use name::{DomainName, InvalidName, LABEL_BYTES_MAX, NAME_BYTES_MAX, NameError, POINTERS_MAX};
pub use question::{DnsQuestion, QUERY_BYTES_MAX, RecordType};
pub use response::{DnsAnswer, RecordData, Response, Service, id_of, is_truncated, parse};
pub use update::{
    SignedUpdate, TsigAlgorithm, TsigHmac, TsigKey, TxtChange, TxtUpdate, UpdateError,
};

/// The length of a message's header.
const HEADER_BYTES: usize = 12;
/// The class of the Internet, the only one in use.
const CLASS_IN: u16 = 1;

/// Reads two bytes.
fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
