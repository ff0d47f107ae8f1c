//! Version 2: sixteen bytes, addresses, and extra values.
//!
//! ```text
//! signature (12)  version, command (1)  family, transport (1)  length (2)  addresses  TLVs
//! ```

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use super::header::{Header, HeaderError, ProxyEndpoint, Read, V2_MAX, write};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes before the addresses.
const HEAD: usize = 16;
/// The length of IPv4's addresses and ports.
const INET: usize = 12;
/// The length of IPv6's.
const INET6: usize = 36;

/// Version 2 and the command: the connection is a client's, or the sender's own.
const PROXY: u8 = 0x21;
const LOCAL: u8 = 0x20;

/// IPv4 and IPv6, each with a protocol: TCP or UDP.
const INET_FAMILY: u8 = 0x10;
const INET6_FAMILY: u8 = 0x20;
const STREAM: u8 = 1;
const DATAGRAM: u8 = 2;

// Types of extra values. The value of TLS contains others.
const TLV_ALPN: u8 = 1;
const TLV_AUTHORITY: u8 = 2;
const TLV_CRC32C: u8 = 3;
const TLV_SSL: u8 = 0x20;
const TLV_SSL_VERSION: u8 = 0x21;
const TLV_SSL_CN: u8 = 0x22;
const TLV_SSL_CIPHER: u8 = 0x23;

// Flags in the value of TLS: the client uses TLS; it has sent a certificate on this connection; it
// has sent one in this session.
const CLIENT_SSL: u8 = 1;
const CLIENT_CERT_CONN: u8 = 2;
const CLIENT_CERT_SESS: u8 = 4;

/// Longer values are left out, so that all together stay below [`V2_MAX`].
const VALUE_MAX: usize = 512;

/// The client's TLS values in a header. Empty ones are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsValues<'a> {
    /// The name that the client sent (SNI).
    pub authority: &'a [u8],
    /// The application protocol.
    pub alpn: &'a [u8],
    /// `TLSv1.2`, `TLSv1.3`.
    pub version: &'a [u8],
    /// The cipher suite, by OpenSSL's name.
    pub cipher: &'a [u8],
    /// The result of verifying the client's certificate, in OpenSSL's numbers; `None` without a
    /// certificate.
    pub verification: Option<u32>,
    /// The common name in the certificate.
    pub common_name: &'a [u8],
    /// Whether a session was resumed; the certificate is then that of the earlier connection.
    pub is_resumed: bool,
}

/// Appends the header for a connection from `source` that came in at `destination`, with its
/// checksum. Without both addresses (Unix sockets have none) the header has none.
pub fn write_v2(
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    tls: Option<&TlsValues<'_>>,
    out: &mut Vec<u8>,
) {
    write_header(source, destination, STREAM, tls, out);
}

/// Like [`write_v2`], for datagrams.
pub fn write_v2_datagram(
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    out: &mut Vec<u8>,
) {
    write_header(source, destination, DATAGRAM, None, out);
}

fn write_header(
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    transport: u8,
    tls: Option<&TlsValues<'_>>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(SIGNATURE);
    match source.zip(destination) {
        None => out.extend_from_slice(&[LOCAL, 0, 0, 0]),
        Some((source, destination)) => write_addresses(source, destination, transport, out),
    }
    if let Some(tls) = tls {
        tls.write(out);
    }
    out.extend_from_slice(&[TLV_CRC32C, 0, 4, 0, 0, 0, 0]);
    let len = (out.len() - start - HEAD) as u16;
    out[start + HEAD - 2..start + HEAD].copy_from_slice(&len.to_be_bytes());
    let checksum = crc32c(&out[start..]);
    let end = out.len();
    out[end - 4..].copy_from_slice(&checksum.to_be_bytes());
}

impl TlsValues<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        write_value(TLV_AUTHORITY, self.authority, out);
        write_value(TLV_ALPN, self.alpn, out);
        out.extend_from_slice(&[TLV_SSL, 0, 0]);
        let start = out.len();
        let done = match (self.verification, self.is_resumed) {
            (None, _) => CLIENT_SSL,
            (Some(_), true) => CLIENT_SSL | CLIENT_CERT_SESS,
            (Some(_), false) => CLIENT_SSL | CLIENT_CERT_SESS | CLIENT_CERT_CONN,
        };
        out.push(done);
        // As in nginx, without a certificate it is OpenSSL's "unspecified".
        out.extend_from_slice(&self.verification.unwrap_or(1).to_be_bytes());
        write_value(TLV_SSL_VERSION, self.version, out);
        write_value(TLV_SSL_CN, self.common_name, out);
        write_value(TLV_SSL_CIPHER, self.cipher, out);
        let len = (out.len() - start) as u16;
        out[start - 2..start].copy_from_slice(&len.to_be_bytes());
    }
}

fn write_value(kind: u8, value: &[u8], out: &mut Vec<u8>) {
    if (1..=VALUE_MAX).contains(&value.len()) {
        out.push(kind);
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value);
    }
}

/// As in nginx, one IPv6 address makes both IPv6.
fn write_addresses(source: SocketAddr, destination: SocketAddr, transport: u8, out: &mut Vec<u8>) {
    let v4 = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    };
    match v4(source.ip()).zip(v4(destination.ip())) {
        Some((from, to)) => {
            out.extend_from_slice(&[PROXY, INET_FAMILY | transport, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        None => {
            out.extend_from_slice(&[PROXY, INET6_FAMILY | transport, 0, 0]);
            for ip in [source.ip(), destination.ip()] {
                let ip = match ip {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                    IpAddr::V6(v6) => v6,
                };
                out.extend_from_slice(&ip.octets());
            }
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

/// The checksum of RFC 3720, appendix B.4, computed bit by bit: a header is short.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

/// Reads a header of version 2, which may be incomplete.
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
    // As in nginx, only a proxied stream over IP has addresses.
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
