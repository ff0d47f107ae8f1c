//! Version 2: sixteen bytes, addresses, and extra values.
//!
//! ```text
//! signature (12)  version, command (1)  family, transport (1)  length (2)  addresses  TLVs
//! ```

use alloc::vec::Vec;
use core::net::IpAddr;

use super::header::{Header, HeaderError, ProxyEndpoint, Read, V2_MAX, write};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes before the addresses.
const HEAD: usize = 16;
/// The length of IPv4's addresses and ports.
const INET: usize = 12;
/// The length of IPv6's.
const INET6: usize = 36;

/// Reads what begins as a header of version 2, as far as it goes.
pub(super) fn read(input: &[u8]) -> Result<Read, HeaderError> {
    let Some((head, rest)) = input.split_first_chunk::<HEAD>() else { return Ok(Read::Partial) };
    let [.., version_command, family_transport, high, low] = *head;
    if version_command >> 4 != 2 {
        return Err(HeaderError::UnknownVersion(version_command >> 4));
    }
    let len = HEAD + usize::from(u16::from_be_bytes([high, low]));
    if len > V2_MAX {
        return Err(HeaderError::TooLarge);
    }
    let Some(rest) = rest.get(..len - HEAD) else { return Ok(Read::Partial) };
    // As in nginx, what is not a proxied stream over IP says nothing.
    let header = match (version_command & 0x0f, family_transport) {
        (1, 0x11) => Some(inet(rest).ok_or(HeaderError::TooSmall)?),
        (1, 0x21) => Some(inet6(rest).ok_or(HeaderError::TooSmall)?),
        _ => None,
    };
    Ok(Read::Complete { len, header })
}

fn inet(rest: &[u8]) -> Option<Header> {
    let (addresses, tlvs) = rest.split_first_chunk::<INET>()?;
    let (source, addresses) = addresses.split_first_chunk::<4>()?;
    let (destination, ports) = addresses.split_first_chunk::<4>()?;
    header((*source).into(), (*destination).into(), ports, tlvs)
}

fn inet6(rest: &[u8]) -> Option<Header> {
    let (addresses, tlvs) = rest.split_first_chunk::<INET6>()?;
    let (source, addresses) = addresses.split_first_chunk::<16>()?;
    let (destination, ports) = addresses.split_first_chunk::<16>()?;
    header((*source).into(), (*destination).into(), ports, tlvs)
}

fn header(source: IpAddr, destination: IpAddr, ports: &[u8], tlvs: &[u8]) -> Option<Header> {
    let &[source_high, source_low, high, low] = ports else { return None };
    Some(Header {
        source: endpoint(source, [source_high, source_low]),
        destination: endpoint(destination, [high, low]),
        tlvs: tlvs.into(),
    })
}

fn endpoint(ip: IpAddr, port: [u8; 2]) -> ProxyEndpoint {
    let mut address = Vec::new();
    write(&mut address, format_args!("{ip}"));
    ProxyEndpoint { address: address.into(), port: u16::from_be_bytes(port) }
}
