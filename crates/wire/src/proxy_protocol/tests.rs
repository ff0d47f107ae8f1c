//! Both versions, whole and in pieces, and invalid headers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The result of reading a header, as text: its length and contents, or the message.
fn shown(input: &[u8]) -> String {
    match read(input) {
        Ok(Read::Partial) => "partial".into(),
        Ok(Read::Complete { len, header: None }) => format!("{len}"),
        Ok(Read::Complete { len, header: Some(Header { source, destination, .. }) }) => {
            let end = |ProxyEndpoint { address, port }| format!("{} {port}", text(&address));
            format!("{len} {} - {}", end(source), end(destination))
        }
        Err(error) => {
            let mut message = Vec::new();
            error.write_message(input, &mut message);
            text(&message)
        }
    }
}

fn v2(version_command: u8, family_transport: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = v2::SIGNATURE.to_vec();
    header.extend([version_command, family_transport]);
    header.extend((rest.len() as u16).to_be_bytes());
    header.extend_from_slice(rest);
    header
}

const INET: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0, 123, 22, 46];

#[test]
fn version_1() {
    let table = [
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\nGET", "41 192.0.2.1 123 - 192.0.2.2 5678"),
        ("PROXY TCP6 2001:Db8::1 :: 0 65535\r\n", "35 2001:Db8::1 0 - :: 65535"),
        ("PROXY UNKNOWN\r\n", "15"),
        ("PROXY UNKNOWN 1 2 3\r\nGET", "21"),
        ("PROXY UNKNOWN 1\n2\r\n", "19"),
        ("", "partial"),
        ("PRO", "partial"),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r", "partial"),
        ("PROXY UNK", "partial"),
        ("PROXY TC", "partial"),
        // These lines cannot become valid.
        ("PROXY INVALID", "broken header: \"PROXY INVALID\""),
        ("PROXY TCP5", "broken header: \"PROXY TCP5\""),
        ("PROXY TCP4 192.0.2.1 host", "broken header: \"PROXY TCP4 192.0.2.1 host\""),
        ("GET / HTTP/1.0\r\n\r\n", "broken header: \"GET / HTTP/1.0\""),
        ("PROXY TCP5 1 2 3 4\r\n", "broken header: \"PROXY TCP5 1 2 3 4\""),
        ("PROXY TCP4 1 g 3 4\r\n", "broken header: \"PROXY TCP4 1 g 3 4\""),
        ("PROXY TCP4 1 2 3 65536\r\n", "broken header: \"PROXY TCP4 1 2 3 65536\""),
        ("PROXY TCP4 1 2 3\r\n", "broken header: \"PROXY TCP4 1 2 3\""),
        ("PROXY TCP4 1 2 3 \r\n", "broken header: \"PROXY TCP4 1 2 3 \""),
        ("PROXY TCP4 1 2 3 4 5\r\n", "broken header: \"PROXY TCP4 1 2 3 4 5\""),
        ("PROXY TCP4 1 2 3 4\nGET / HTTP/1.0\r\n", "broken header: \"PROXY TCP4 1 2 3 4\""),
    ];
    for (input, expected) in table {
        assert_eq!(shown(input.as_bytes()), expected, "{input:?}");
    }
}

#[test]
fn version_1_is_at_most_107_bytes() {
    let line = |length: usize| format!("PROXY UNKNOWN{}\r\n", " ".repeat(length - 15));
    assert_eq!(shown(line(V1_MAX).as_bytes()), "107");
    assert!(shown(line(V1_MAX + 1).as_bytes()).starts_with("broken header: "));
    assert_eq!(shown(&line(V1_MAX).as_bytes()[..V1_MAX - 1]), "partial");
}

#[test]
fn version_2() {
    let mut inet6 = [0; 36];
    (inet6[15], inet6[31], inet6[33]) = (1, 2, 80);
    let table = [
        (v2(0x21, 0x11, &INET), "28 192.0.2.1 123 - 192.0.2.2 5678"),
        (v2(0x21, 0x21, &inet6), "52 ::1 80 - ::2 0"),
        (v2(0x20, 0x00, &[]), "16"),
        (v2(0x20, 0x11, &INET), "28"),
        (v2(0x22, 0x11, &INET), "28"),
        (v2(0x21, 0x12, &INET), "28"),
        (v2(0x21, 0x31, &[0; 216]), "232"),
        (v2(0x21, 0x11, &INET[..11]), "header is too small"),
        (v2(0x21, 0x21, &inet6[..35]), "header is too small"),
        (v2(0x11, 0x11, &INET), "unknown PROXY protocol version: 1"),
        (v2(0x20, 0x00, &[0; V2_MAX - 16]), "4096"),
        (v2(0x20, 0x00, &[0; V2_MAX - 15]), "header is too large"),
        (v2(0x21, 0x11, &INET)[..27].to_vec(), "partial"),
        (v2(0x21, 0x11, &INET)[..15].to_vec(), "partial"),
        (b"\r\n\r\n\0\r\nQUIt".to_vec(), "broken header: \"\""),
    ];
    for (input, expected) in table {
        assert_eq!(shown(&input), expected, "{input:x?}");
    }
}

/// The value of a name in a header with these TLVs.
fn tlv(tlvs: &[u8], name: &str) -> Result<Option<String>, TlvError> {
    let input = v2(0x21, 0x11, &[&INET, tlvs].concat());
    let Ok(Read::Complete { header: Some(header), .. }) = read(&input) else { panic!("{input:?}") };
    let mut value = Vec::new();
    let found = header.tlv(TlvName::parse(name.as_bytes()), &mut value)?;
    assert!(found || value.is_empty());
    Ok(found.then(|| text(&value)))
}

#[test]
fn values_by_name_and_number() {
    let tlvs = b"\x01\0\x02h2\x20\0\x0f\x01\0\0\0\xff\x22\0\x03abc\x21\0\x01v\xae\0\x00";
    let table = [
        ("alpn", Some("h2")),
        ("0x1", Some("h2")),
        ("0x0001", Some("h2")),
        ("ssl_verify", Some("255")),
        ("ssl_cn", Some("abc")),
        ("ssl_0x22", Some("abc")),
        ("ssl_version", Some("v")),
        ("ssl_cipher", None),
        ("0xAE", Some("")),
        ("0x22", None),
        ("0x101", None),
        ("netns", None),
    ];
    for (name, expected) in table {
        assert_eq!(tlv(tlvs, name).unwrap().as_deref(), expected, "{name}");
    }
}

#[test]
fn values_that_are_not_available() {
    let table = [
        ("cn", Err(TlvError::UnknownName)),
        ("", Err(TlvError::UnknownName)),
        ("0x", Err(TlvError::InvalidName)),
        ("0xg", Err(TlvError::InvalidName)),
        ("0xfffffffffffffffff", Err(TlvError::InvalidName)),
        // Without values about TLS, the name is not checked.
        ("ssl_foo", Ok(None)),
    ];
    for (name, expected) in table {
        assert_eq!(tlv(b"", name), expected, "{name}");
    }
    assert_eq!(tlv(b"\x20\0\x05\0\0\0\0\0", "ssl_alpn"), Err(TlvError::UnknownName));
    assert_eq!(tlv(b"\x20\0\x04\0\0\0\0", "ssl_verify"), Ok(None));
    for broken in [&b"\x02"[..], b"\x02\0", b"\x02\0\x01", b"\x02\0\x00\x02\0\x01"] {
        assert_eq!(tlv(broken, "alpn"), Err(TlvError::Broken), "{broken:?}");
        assert_eq!(tlv(broken, "0x100"), Err(TlvError::Broken), "{broken:?}");
    }
    assert_eq!(tlv(b"\x01\0\x01a\x02", "alpn"), Ok(Some("a".into())));
}

#[test]
fn a_written_version_1_header_can_be_read() {
    let table = [
        (Some("192.0.2.1:1"), Some("[::1]:2"), "PROXY TCP4 192.0.2.1 ::1 1 2\r\n"),
        (Some("[::1]:65535"), Some("[::2]:80"), "PROXY TCP6 ::1 ::2 65535 80\r\n"),
        (None, Some("[::2]:80"), "PROXY UNKNOWN\r\n"),
        (Some("[::2]:80"), None, "PROXY UNKNOWN\r\n"),
    ];
    for (source, destination, expected) in table {
        let address = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        let mut line = Vec::new();
        write_v1(address(source), address(destination), &mut line);
        assert_eq!(text(&line), expected);
        assert!(matches!(read(&line), Ok(Read::Complete { len, .. }) if len == line.len()));
    }
}

#[test]
fn a_written_version_2_header_can_be_read() {
    let table = [
        (Some("192.0.2.1:1"), Some("192.0.2.2:2"), 12 + 7, Some(("192.0.2.1", 1, "192.0.2.2", 2))),
        (Some("[::1]:65535"), Some("[::2]:80"), 36 + 7, Some(("::1", 65535, "::2", 80))),
        (Some("192.0.2.1:1"), Some("[::1]:2"), 36 + 7, Some(("::ffff:192.0.2.1", 1, "::1", 2))),
        (
            Some("[::ffff:192.0.2.1]:1"),
            Some("[::ffff:192.0.2.2]:2"),
            19,
            Some(("192.0.2.1", 1, "192.0.2.2", 2)),
        ),
        (None, Some("[::2]:80"), 7, None),
    ];
    for (source, destination, rest, expected) in table {
        let address = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        let mut bytes = b"before".to_vec();
        write_v2(address(source), address(destination), None, &mut bytes);
        let bytes = &bytes[b"before".len()..];
        let Ok(Read::Complete { len, header }) = read(bytes) else { panic!("{source:?}") };
        assert_eq!((len, bytes.len()), (16 + rest, 16 + rest));
        let (mut said, mut checksum) = (header.clone(), Vec::new());
        let end = |end: ProxyEndpoint| (text(&end.address), end.port);
        let said = said.take().map(|header| (end(header.source), end(header.destination)));
        let expected = expected.map(|(from, a, to, b)| ((from.into(), a), (to.into(), b)));
        assert_eq!(said, expected);
        if let Some(header) = header {
            assert_eq!(header.tlv(TlvName::parse(b"0x03"), &mut checksum), Ok(true));
            assert_eq!(checksum, &bytes[len - 4..]);
        }
    }
}

#[test]
fn version_2_contains_the_tls_values() {
    let address = "192.0.2.1:1".parse().ok();
    let said = |tls: &TlsValues<'_>| {
        let mut bytes = Vec::new();
        write_v2(address, address, Some(tls), &mut bytes);
        let Ok(Read::Complete { len, header: Some(header) }) = read(&bytes) else { panic!() };
        assert_eq!(len, bytes.len());
        let names = ["authority", "alpn", "ssl_version", "ssl_cn", "ssl_cipher", "ssl_verify"];
        let values = names.map(|name| {
            let mut value = Vec::new();
            header.tlv(TlvName::parse(name.as_bytes()), &mut value).unwrap();
            String::from_utf8(value).unwrap()
        });
        let mut ssl = Vec::new();
        header.tlv(TlvName::parse(b"ssl"), &mut ssl).unwrap();
        (values.join(" "), ssl[0])
    };
    let plain = TlsValues { version: b"TLSv1.3", cipher: b"C", ..TlsValues::default() };
    assert_eq!(said(&plain), ("  TLSv1.3  C 1".into(), 1));
    let shown = TlsValues {
        authority: b"a.test",
        alpn: b"h2",
        verification: Some(0),
        common_name: b"client",
        ..plain
    };
    assert_eq!(said(&shown), ("a.test h2 TLSv1.3 client C 0".into(), 7));
    let resumed = TlsValues { is_resumed: true, verification: Some(18), ..shown };
    assert_eq!(said(&resumed), ("a.test h2 TLSv1.3 client C 18".into(), 5));
    let long = [b'x'; 513];
    assert_eq!(said(&TlsValues { common_name: &long, ..shown }).0, "a.test h2 TLSv1.3  C 0");
}

#[test]
fn version_2_distinguishes_streams_and_datagrams() {
    for (address, stream, datagram) in [("192.0.2.1:1", 0x11, 0x12), ("[::1]:1", 0x21, 0x22)] {
        let address = address.parse().ok();
        let (mut of_stream, mut of_datagram) = (Vec::new(), Vec::new());
        write_v2(address, address, None, &mut of_stream);
        write_v2_datagram(address, address, &mut of_datagram);
        assert_eq!((of_stream[13], of_datagram[13]), (stream, datagram));
        assert_eq!(of_stream.len(), of_datagram.len());
        // As in nginx, addresses of datagrams are not read.
        assert!(matches!(read(&of_datagram), Ok(Read::Complete { header: None, .. })));
    }
}

#[test]
fn the_checksum_is_that_of_the_specification() {
    // RFC 3720, appendix B.4.
    assert_eq!(v2::crc32c(&[0; 32]).swap_bytes(), 0xaa36_918a);
    assert_eq!(v2::crc32c(b"123456789"), 0xe306_9283);
}
