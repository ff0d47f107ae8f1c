//! HPACK, the compression of header fields in HTTP/2 (RFC 7541).
//!
//! A [`Decoder`] turns the blocks of one direction of a connection into fields, an [`Encoder`]
//! turns fields into blocks. Both hold the state of one direction: blocks must be decoded in the
//! order in which they arrive, and sent in the order in which they were encoded.
//!
//! Deliberately absent: what a field means. Pseudo-headers, upper case in received names and
//! forbidden characters are checked by `http2`.

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

/// The size of a dynamic table until SETTINGS_HEADER_TABLE_SIZE says otherwise (RFC 9113, 6.5.2).
pub const TABLE_BYTES_DEFAULT: usize = 4096;

/// What an entry costs in a table beside the bytes of its name and value (RFC 7541, 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;
