//! HPACK, the compression of header fields in HTTP/2 (RFC 7541).
//!
//! A [`Decoder`] turns the blocks of one direction of a connection into fields, an [`Encoder`]
//! turns fields into blocks. Both hold the state of one direction: blocks must be decoded in the
//! order in which they arrive, and sent in the order in which they were encoded.
//!
//! Deliberately absent: the meaning of fields. `http2` checks pseudo-headers, upper case in
//! received names and forbidden characters.

mod decoder;
mod encoder;
mod error;
mod huffman;
mod integer;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, FieldLimits};
pub use encoder::Encoder;
pub use error::HpackError;

/// The size of a dynamic table without SETTINGS_HEADER_TABLE_SIZE (RFC 9113, 6.5.2).
pub const TABLE_BYTES_DEFAULT: usize = 4096;

/// The size of an entry besides the bytes of its name and value (RFC 7541, 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;
