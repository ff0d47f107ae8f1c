//! The PROXY protocol, versions 1 and 2: a header in which a proxy reports the addresses of the
//! original connection. `haproxy.org/download/3.2/doc/proxy-protocol.txt` is the specification.
//!
//! Read as nginx does, except that a header may arrive in any number of pieces. Deliberately
//! absent: whether the sender is trusted.

mod header;
mod tlv;
mod v1;
mod v2;

pub use header::{Header, HeaderError, ProxyEndpoint, Read, V1_MAX, V2_MAX};
pub use tlv::{TlvError, TlvName};
pub use v1::write_v1;
pub use v2::{TlsValues, write_v2, write_v2_datagram};

use header::begins_as;

/// Reads the header at the beginning of a connection. After [`Read::Partial`], call it again with
/// more bytes.
pub fn read(input: &[u8]) -> Result<Read, HeaderError> {
    if begins_as(input, v2::SIGNATURE) && !input.is_empty() {
        return v2::read(input);
    }
    if begins_as(input, v1::SIGNATURE) {
        return v1::read(input);
    }
    Err(HeaderError::Broken)
}

#[cfg(test)]
mod tests;
