//! Version 1: one line of text.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::header::{Header, HeaderError, ProxyEndpoint, Read, V1_MAX, begins_as, write};

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

/// Reads a header of version 1, which may be incomplete.
pub(super) fn read(input: &[u8]) -> Result<Read, HeaderError> {
    let within = &input[..input.len().min(V1_MAX)];
    match within.windows(2).position(|pair| pair == b"\r\n") {
        Some(end) => {
            let header = line(&input[SIGNATURE.len()..end]).ok_or(HeaderError::Broken)?;
            Ok(Read::Complete { len: end + 2, header })
        }
        None if within.len() == V1_MAX => Err(HeaderError::Broken),
        None if may_become_line(input.get(SIGNATURE.len()..).unwrap_or_default()) => {
            Ok(Read::Partial)
        }
        None => Err(HeaderError::Broken),
    }
}

/// Whether more bytes can complete a line with this text. If not, the end of the line is not
/// awaited.
fn may_become_line(text: &[u8]) -> bool {
    const PROTOCOL_BYTES: usize = b"TCP4 ".len();
    if begins_as(text, b"UNKNOWN") {
        return true;
    }
    let addresses = text.get(PROTOCOL_BYTES..).unwrap_or_default();
    (begins_as(text, b"TCP4 ") || begins_as(text, b"TCP6 "))
        && addresses.iter().all(|byte| is_of_address(byte) || matches!(byte, b' ' | b'\r'))
}

/// The text after `PROXY `: `UNKNOWN` and anything, or `TCP4 SOURCE DESTINATION PORT PORT`.
fn line(text: &[u8]) -> Option<Option<Header>> {
    if text.starts_with(b"UNKNOWN") {
        return Some(None);
    }
    let text = text.strip_prefix(b"TCP4 ").or_else(|| text.strip_prefix(b"TCP6 "))?;
    let mut words = text.splitn(4, |&byte| byte == b' ');
    let (source, destination) = (address(words.next()?)?, address(words.next()?)?);
    let source = ProxyEndpoint { address: source.into(), port: port(words.next()?)? };
    let destination = ProxyEndpoint { address: destination.into(), port: port(words.next()?)? };
    Some(Some(Header { source, destination, tlvs: [].into() }))
}

fn address(text: &[u8]) -> Option<&[u8]> {
    text.iter().all(is_of_address).then_some(text)
}

fn is_of_address(byte: &u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')
}

fn port(text: &[u8]) -> Option<u16> {
    let digit = |port: u16, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, digit) }
}

/// Appends the line for a connection from `source` that came in at `destination`. Without both
/// addresses (Unix sockets have none) it is `PROXY UNKNOWN`.
pub fn write_v1(source: Option<SocketAddr>, destination: Option<SocketAddr>, out: &mut Vec<u8>) {
    let (Some(source), Some(destination)) = (source, destination) else {
        return out.extend_from_slice(b"PROXY UNKNOWN\r\n");
    };
    let family = if source.is_ipv4() { 4 } else { 6 };
    let (from, to) = (source.ip(), destination.ip());
    let (source, destination) = (source.port(), destination.port());
    write(out, format_args!("PROXY TCP{family} {from} {to} {source} {destination}\r\n"));
}
