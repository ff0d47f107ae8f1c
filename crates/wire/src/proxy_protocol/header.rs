//! A parsed header, and the errors of parsing.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The longest header of version 1, end of line included.
pub const V1_MAX: usize = 107;

/// The longest header of version 2 that is accepted.
pub const V2_MAX: usize = 4096;

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The client's address.
    pub source: ProxyEndpoint,
    /// The address that the client connected to.
    pub destination: ProxyEndpoint,
    /// The extra values of version 2; see [`Header::tlv`].
    pub(super) tlvs: Box<[u8]>,
}

/// One end of the connection to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyEndpoint {
    /// The address as text. In version 1 it is as sent: hexadecimal digits, dots, colons.
    pub address: Box<[u8]>,
    pub port: u16,
}

/// The result of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// More bytes are needed.
    Partial,
    /// The header is the first `len` bytes.
    Complete {
        len: usize,
        /// The contents; `None` if the header has no addresses.
        header: Option<Header>,
    },
}

/// Why a header is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Not a header, or an invalid one of version 1.
    Broken,
    /// A version other than 1 and 2.
    UnknownVersion(u8),
    /// The header is longer than [`V2_MAX`].
    TooLarge,
    /// Version 2, with less space than its addresses need.
    TooSmall,
}

impl HeaderError {
    /// Appends nginx's log message. `input` is the input that was read.
    pub fn write_message(self, input: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Broken => {
                let end = input.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
                out.extend_from_slice(b"broken header: \"");
                out.extend_from_slice(&input[..end.unwrap_or(input.len())]);
                out.push(b'"');
            }
            Self::UnknownVersion(version) => {
                out.extend_from_slice(b"unknown PROXY protocol version: ");
                write(out, format_args!("{version}"));
            }
            Self::TooLarge => out.extend_from_slice(b"header is too large"),
            // nginx has no message for this.
            Self::TooSmall => out.extend_from_slice(b"header is too small"),
        }
    }
}

/// Appends text to bytes.
pub(super) fn write(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    struct VecWriter<'v>(&'v mut Vec<u8>);
    impl Write for VecWriter<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    VecWriter(out).write_fmt(text).expect("a vector takes everything");
}

/// Whether the input begins with the signature, as far as the input goes.
pub(super) fn begins_as(input: &[u8], signature: &[u8]) -> bool {
    let length = input.len().min(signature.len());
    input[..length] == signature[..length]
}
