//! The first message of a TLS client (RFC 8446 section 4.1.2), as far as it decides how the
//! connection is served: the server name, the application protocols, and the client's capabilities.
//!
//! It is read before any session exists. Only its structure is checked; the handshake checks the
//! rest. Deliberately absent: everything after this message.

use alloc::borrow::Cow;
use alloc::vec::Vec;

/// The result of reading the first bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum HelloBytes<'a> {
    /// More bytes are needed.
    Partial,
    /// Not TLS: the first record is not a handshake record.
    NotTls,
    /// The message, in one piece.
    Complete(Cow<'a, [u8]>),
}

/// The parts of a well-formed message, without its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// `host_name`, as sent.
    pub server_name: Option<&'a [u8]>,
    /// Numbers of cipher suites, two bytes each.
    pub cipher_suites: &'a [u8],
    /// Numbers of groups.
    pub groups: &'a [u8],
    /// Numbers of signature schemes.
    pub signature_schemes: &'a [u8],
    /// Numbers of versions; empty without the extension `supported_versions`.
    pub versions: &'a [u8],
    /// The version in the message's head.
    pub legacy_version: u16,
    /// Application protocols, each after its length.
    protocols: &'a [u8],
}

/// A record's header: type, version, length.
const RECORD_HEADER: usize = 5;
/// A message's header: type, length.
const MESSAGE_HEADER: usize = 4;
/// The longest message, in bytes.
pub const MESSAGE_MAX: usize = 1 << 16;

/// The longest unencrypted record, in bytes (RFC 8446 section 5.1).
const RECORD_MAX: usize = 1 << 14;

const HANDSHAKE: u8 = 22;
/// The first byte of a record's version, whatever the version of TLS.
pub const RECORD_VERSION_MAJOR: u8 = 3;
const CLIENT_HELLO: u8 = 1;

const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const PROTOCOLS: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// Why a first record cannot begin a handshake, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloFault {
    /// The record is longer than allowed.
    RecordTooLong,
    /// The message is not a ClientHello.
    OtherMessage,
    /// The message is longer than the handshake accepts.
    MessageTooLong,
}

/// The fault of a first handshake record, as soon as its headers reveal it.
pub fn fault(received: &[u8]) -> Option<HelloFault> {
    let (header, payload) = received.split_first_chunk::<RECORD_HEADER>()?;
    let [HANDSHAKE, _, _, high, low] = *header else { return None };
    let record_length = usize::from(u16::from_be_bytes([high, low]));
    if record_length > RECORD_MAX {
        return Some(HelloFault::RecordTooLong);
    }
    let payload = &payload[..payload.len().min(record_length)];
    if payload.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Some(HelloFault::OtherMessage);
    }
    // The handshake accepts a body whose length fits into two bytes.
    let is_too_long = message_length(payload)? >= MESSAGE_HEADER + MESSAGE_MAX;
    is_too_long.then_some(HelloFault::MessageTooLong)
}

/// Collects the message from its records.
pub fn message(received: &[u8]) -> HelloBytes<'_> {
    match received.first() {
        None => return HelloBytes::Partial,
        Some(&HANDSHAKE) => {}
        Some(_) => return HelloBytes::NotTls,
    }
    let Some((first, rest)) = record(received) else { return HelloBytes::Partial };
    if let Some(length) = message_length(first)
        && first.len() >= length
    {
        return HelloBytes::Complete(Cow::Borrowed(&first[..length]));
    }
    let mut joined = Vec::from(first);
    let mut rest = rest;
    while joined.len() < MESSAGE_MAX {
        let Some((next, behind)) = record(rest) else { return HelloBytes::Partial };
        joined.extend_from_slice(next);
        rest = behind;
        if let Some(length) = message_length(&joined)
            && joined.len() >= length
        {
            joined.truncate(length);
            return HelloBytes::Complete(Cow::Owned(joined));
        }
    }
    // The message is too long: the handshake refuses it.
    HelloBytes::Complete(Cow::Owned(joined))
}

/// The result of observing the first bytes of a connection. An observer passes them on in any case.
#[derive(Debug, PartialEq, Eq)]
pub enum ObservedHello<'a> {
    /// The bytes so far may become a ClientHello.
    Partial,
    /// Not a ClientHello.
    Other,
    /// A ClientHello in the form of SSL 2, which contains only a version.
    OldForm(u16),
    /// A ClientHello, in one piece; not necessarily well-formed.
    Complete(Cow<'a, [u8]>),
}

/// Recognizes a ClientHello as early as possible. Unlike [`message`], it does not wait for the rest
/// of a message that a TLS server would refuse.
pub fn observe(received: &[u8]) -> ObservedHello<'_> {
    match *received {
        [] => ObservedHello::Partial,
        [first, ..] if first & 0x80 != 0 => old_form(received),
        [HANDSHAKE] => ObservedHello::Partial,
        [HANDSHAKE, RECORD_VERSION_MAJOR, _, _, _, first, ..] if first != CLIENT_HELLO => {
            ObservedHello::Other
        }
        [HANDSHAKE, RECORD_VERSION_MAJOR, ..] => match message(received) {
            HelloBytes::Partial => ObservedHello::Partial,
            HelloBytes::NotTls => ObservedHello::Other,
            HelloBytes::Complete(message) => ObservedHello::Complete(message),
        },
        _ => ObservedHello::Other,
    }
}

/// A message of SSL 2 (RFC 5246 appendix E.2): length, type, version.
fn old_form(received: &[u8]) -> ObservedHello<'_> {
    match *received {
        [_, _, CLIENT_HELLO, major @ (0 | RECORD_VERSION_MAJOR), minor, ..] => {
            ObservedHello::OldForm(u16::from_be_bytes([major, minor]))
        }
        [_] | [_, _] | [_, _, CLIENT_HELLO] | [_, _, CLIENT_HELLO, 0 | RECORD_VERSION_MAJOR] => {
            ObservedHello::Partial
        }
        _ => ObservedHello::Other,
    }
}

/// The contents of the first record and the bytes after it, if the record is complete.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<RECORD_HEADER>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes([header[3], header[4]])))
}

fn message_length(message: &[u8]) -> Option<usize> {
    let [_, a, b, c, ..] = message else { return None };
    Some(MESSAGE_HEADER + u32::from_be_bytes([0, *a, *b, *c]) as usize)
}

impl<'a> ClientHello<'a> {
    /// Reads a message with its header; `None` if it is another message, or broken.
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let mut rest = message;
        let [CLIENT_HELLO, ..] = take(&mut rest, MESSAGE_HEADER)? else { return None };
        if message_length(message)? != message.len() {
            return None;
        }
        let mut hello = Self { legacy_version: number(&mut rest)?, ..Self::default() };
        let _random = take(&mut rest, 32)?;
        let _session_id = list8(&mut rest)?;
        hello.cipher_suites = list16(&mut rest)?;
        let _compression_methods = list8(&mut rest)?;
        if rest.is_empty() {
            return Some(hello);
        }
        let mut extensions = list16(&mut rest)?;
        while !extensions.is_empty() {
            let kind = number(&mut extensions)?;
            hello.extension(kind, list16(&mut extensions)?)?;
        }
        Some(hello)
    }

    fn extension(&mut self, kind: u16, mut body: &'a [u8]) -> Option<()> {
        match kind {
            SERVER_NAME => {
                let mut names = list16(&mut body)?;
                let kind = take(&mut names, 1)?;
                let name = list16(&mut names)?;
                self.server_name = (kind == [0]).then_some(name);
            }
            SUPPORTED_GROUPS => self.groups = list16(&mut body)?,
            SIGNATURE_ALGORITHMS => self.signature_schemes = list16(&mut body)?,
            PROTOCOLS => self.protocols = list16(&mut body)?,
            SUPPORTED_VERSIONS => self.versions = list8(&mut body)?,
            _ => {}
        }
        Some(())
    }

    /// The application protocols that the client offers (ALPN), best first.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.protocols;
        core::iter::from_fn(move || list8(&mut rest).filter(|name| !name.is_empty()))
    }
}

/// The numbers of a list.
pub fn numbers(list: &[u8]) -> impl Iterator<Item = u16> {
    list.as_chunks().0.iter().map(|number| u16::from_be_bytes(*number))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(rest, 2)?.try_into().ok()?))
}

fn list8<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(rest, 1)?[0];
    take(rest, length.into())
}

fn list16<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    take(rest, length.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn list(width: usize, bytes: &[u8]) -> Vec<u8> {
        let length = (bytes.len() as u32).to_be_bytes();
        [&length[4 - width..], bytes].concat()
    }

    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &list(2, body)].concat()
    }

    fn hello() -> Vec<u8> {
        let extensions = [
            extension(SERVER_NAME, &list(2, &[&[0][..], &list(2, b"a.example")].concat())),
            extension(SUPPORTED_GROUPS, &list(2, &[0, 29, 0, 23])),
            extension(SIGNATURE_ALGORITHMS, &list(2, &[4, 3])),
            extension(PROTOCOLS, &list(2, b"\x02h2\x08http/1.1")),
            extension(SUPPORTED_VERSIONS, &list(1, &[3, 4, 3, 3])),
            extension(0xfafa, b"?"),
        ];
        let suites = list(2, &[0x13, 1, 0x13, 2]);
        let head = [&[3, 3][..], &[7; 32], &list(1, &[1; 32]), &suites, &list(1, &[0])].concat();
        let body = [head, list(2, &extensions.concat())].concat();
        [&[CLIENT_HELLO][..], &list(3, &body)].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &list(2, part)].concat();
        message.chunks(size).flat_map(record).collect()
    }

    #[test]
    fn headers_reveal_a_first_record_that_cannot_become_a_client_hello() {
        let faults: [(&[u8], Option<HelloFault>); 9] = [
            (&[22, 3, 1, 0xff], None),
            (&[22, 3, 1, 0xff, 0xff], Some(HelloFault::RecordTooLong)),
            (&[22, 3, 1, 0x40, 1], Some(HelloFault::RecordTooLong)),
            (&[22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff], None),
            (&[22, 3, 1, 0x40, 0, 1, 1, 0, 0], Some(HelloFault::MessageTooLong)),
            (&[22, 3, 1, 0x40, 0, 2], Some(HelloFault::OtherMessage)),
            // Bytes after the record are not part of the message.
            (&[22, 3, 1, 0, 0, 22, 3, 1, 0, 1, 1], None),
            (&[22, 3, 1, 0, 2, 1, 0, 22, 3], None),
            (&[23, 3, 3, 0xff, 0xff, 2], None),
        ];
        for (received, expected) in faults {
            assert_eq!(fault(received), expected, "{received:?}");
        }
    }

    #[test]
    fn a_hello_is_read_from_records_of_any_size() {
        let message_sent = hello();
        for size in [1, 7, message_sent.len()] {
            let mut received = records(&message_sent, size);
            for len in 0..received.len() {
                assert_eq!(message(&received[..len]), HelloBytes::Partial, "{size} {len}");
            }
            received.extend_from_slice(b"more");
            let HelloBytes::Complete(found) = message(&received) else { panic!("{size}") };
            assert_eq!(*found, *message_sent);
        }
        let hello = ClientHello::parse(&message_sent).unwrap();
        assert_eq!(hello.server_name, Some(&b"a.example"[..]));
        assert_eq!(numbers(hello.cipher_suites).collect::<Vec<_>>(), [0x1301, 0x1302]);
        assert_eq!(numbers(hello.groups).collect::<Vec<_>>(), [29, 23]);
        assert_eq!(numbers(hello.signature_schemes).collect::<Vec<_>>(), [0x403]);
        assert_eq!(numbers(hello.versions).collect::<Vec<_>>(), [0x304, 0x303]);
        assert_eq!(hello.protocols().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
        assert_eq!(hello.legacy_version, 0x303);
    }

    #[test]
    fn an_observer_decides_as_soon_as_it_can() {
        let sent = hello();
        for size in [1, 7, sent.len()] {
            let received = records(&sent, size);
            for len in 0..received.len() {
                assert_eq!(observe(&received[..len]), ObservedHello::Partial, "{size} {len}");
            }
            assert_eq!(observe(&received), ObservedHello::Complete(Cow::Borrowed(&sent)));
        }
        for other in
            [&b"S"[..], b"\x16\x02", b"\x16\x03\x01\0\x09\x02", b"\x80\0\x02", b"\x80\0\x01\x01"]
        {
            assert_eq!(observe(other), ObservedHello::Other, "{other:?}");
        }
        let old = b"\x80\x2e\x01\x03\x01";
        assert_eq!(observe(old), ObservedHello::OldForm(0x301));
        assert_eq!(observe(b"\x80\x2e\x01\0\x02"), ObservedHello::OldForm(2));
        for len in 0..old.len() {
            assert_eq!(observe(&old[..len]), ObservedHello::Partial, "{len}");
        }
    }

    #[test]
    fn a_broken_hello_is_refused() {
        let message = hello();
        for len in 0..message.len() {
            assert_eq!(ClientHello::parse(&message[..len]), None, "{len}");
        }
        assert_eq!(ClientHello::parse(&[&[2][..], &message[1..]].concat()), None);
    }

    #[test]
    fn other_protocols_are_recognized_by_their_first_byte() {
        assert_eq!(message(b"GET / HTTP/1.0\r\n\r\n"), HelloBytes::NotTls);
        assert_eq!(message(b""), HelloBytes::Partial);
        let endless = [&[CLIENT_HELLO, 0xff, 0xff, 0xff][..], &vec![0; 70_000]].concat();
        let endless = records(&endless, 9999);
        let HelloBytes::Complete(found) = message(&endless) else { panic!("endless") };
        assert!(found.len() < MESSAGE_MAX + 9999);
    }
}
