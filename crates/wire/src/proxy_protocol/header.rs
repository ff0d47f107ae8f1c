//! A header as it was read, and why it could not be.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The longest header of version 1, end of line included.
pub const V1_MAX: usize = 107;

/// The longest header of version 2 that is read.
pub const V2_MAX: usize = 4096;

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Who connected to the proxy.
    pub source: ProxyEndpoint,
    /// Where it connected to.
    pub destination: ProxyEndpoint,
    /// The extra values of version 2; see [`Header::tlv`].
    pub(super) tlvs: Box<[u8]>,
}

/// One end of the connection to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyEndpoint {
    /// The address as text. Version 1's is as it came: hexadecimal digits, dots, colons.
    pub address: Box<[u8]>,
    /// The port.
    pub port: u16,
}

/// How far reading came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// More bytes are needed.
    Partial,
    /// The header is the first `len` bytes.
    Complete {
        /// Where it ends.
        len: usize,
        /// What it says; `None` where it says that nothing is known.
        header: Option<Header>,
    },
}

/// Why there is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// It is none, or none of version 1 to its end.
    Broken,
    /// A version other than 1 and 2.
    UnknownVersion(u8),
    /// It is longer than [`V2_MAX`].
    TooLarge,
    /// Version 2, with less room than its addresses take.
    TooSmall,
}

impl HeaderError {
    /// nginx's words for the log. `input` is what was read.
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
            // nginx says nothing here.
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

/// Whether the input, as far as it goes, is the signature.
pub(super) fn begins_as(input: &[u8], signature: &[u8]) -> bool {
    let length = input.len().min(signature.len());
    input[..length] == signature[..length]
}
