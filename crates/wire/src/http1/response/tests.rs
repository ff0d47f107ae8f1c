use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::Slice;
use crate::reply::ReplyField;

struct Parsed {
    head: ReplyHead,
    parser: ResponseHeadParser,
    length: usize,
}

fn parsed(text: &[u8]) -> Result<Parsed, ReplyError> {
    let (mut head, mut parser) = (ReplyHead::default(), ResponseHeadParser::default());
    let length = parser.parse(&mut head, text)?.expect("complete");
    Ok(Parsed { head, parser, length })
}

fn lines(head: &ReplyHead, text: &[u8]) -> Vec<String> {
    let line = |field: &ReplyField| {
        alloc::format!(
            "{}={}",
            field.name.of(text).escape_ascii(),
            field.value.of(text).escape_ascii()
        )
    };
    head.fields.iter().map(line).collect()
}

#[test]
fn a_head_is_the_same_whole_and_byte_by_byte() {
    let text = b"HTTP/1.1 200 OK\r\nServer: a b \r\nX-Y:\r\nfoo\r\nSet-Cookie: a\n\r\nrest";
    let Parsed { head: whole, parser, length } = parsed(text).unwrap();
    assert_eq!(&text[length..], b"rest");
    assert_eq!((whole.status, parser.version), (200, Version::HTTP_11));
    assert_eq!(whole.status_line.of(text), b"200 OK");
    assert_eq!(lines(&whole, text), ["Server=a b", "X-Y=", "foo=", "Set-Cookie=a"]);
    let (mut bytewise, mut parser) = (ReplyHead::default(), ResponseHeadParser::default());
    for end in 0..length {
        assert_eq!(parser.parse(&mut bytewise, &text[..end]), Ok(None), "{end}");
    }
    assert_eq!(parser.parse(&mut bytewise, &text[..length]), Ok(Some(length)));
    assert_eq!(parser.parse(&mut bytewise, text), Ok(Some(length)));
    assert_eq!(lines(&bytewise, text), lines(&whole, text));
}

#[test]
fn status_lines() {
    let good: [(&[u8], u16, &[u8]); 6] = [
        (b"HTTP/1.0 200", 200, b"200"),
        (b"HTTP/1.1  404 Not  Found", 404, b"404 Not  Found"),
        (b"HTTP/1.1 403.1 IIS", 403, b"403.1 IIS"),
        (b"HTTP/1.1 200 ", 200, b"200 "),
        (b"HTTP/2.0 200 OK", 200, b"200 OK"),
        (b"HTTP/1.12 999 x", 999, b"999 x"),
    ];
    for (line, status, rest) in good {
        let text = [line, b"\r\n\r\n"].concat();
        let head = parsed(&text).unwrap().head;
        assert_eq!((head.status, head.status_line.of(&text)), (status, rest));
    }
    let bad: [&[u8]; 11] = [
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1200 OK",
        b"HTTP/1 200 OK",
        b"HTTP/1.100 200",
        b"http/1.1 200",
        b"HTTP/0.9 200 OK",
        b"HTTP/1.1 2000",
        b"HTTP/1.1 200x",
        b"HTTP/1.1 099 Small",
        b"ICY 200 OK",
        b"",
    ];
    for line in bad {
        let text = [line, b"\r\n\r\n"].concat();
        assert_eq!(parsed(&text).map(|_| ()), Err(ReplyError::NotHttp), "{}", line.escape_ascii());
    }
    let opening = ResponseHeadParser::default().parse(&mut ReplyHead::default(), b"SSH-");
    assert_eq!(opening, Err(ReplyError::NotHttp));
}

#[test]
fn odd_lines() {
    for (line, at, byte) in [
        (&b" folded"[..], 0, b' '),
        (b"name : x", 4, b' '),
        (b": x", 0, b':'),
        (b"a\0b: x", 1, 0),
        (b"a: x\0", 4, 0),
        (b"a: x\ry", 4, b'\r'),
    ] {
        let text = [b"HTTP/1.1 200 OK\r\n", line, b"\r\n\r\n"].concat();
        let error = ReplyError::InvalidField(Slice { start: 17, end: 17 + at }, byte);
        assert_eq!(parsed(&text).map(|_| ()), Err(error), "{}", line.escape_ascii());
    }
}

#[test]
fn framing() {
    let table: [(&str, bool, Option<ReplyBody>); 12] = [
        ("200 OK\r\n", false, Some(ReplyBody::Close)),
        ("200 OK\r\nContent-Length: 5\r\n", false, Some(ReplyBody::Length(5))),
        ("200 OK\r\nContent-Length: 5\r\n", true, Some(ReplyBody::None)),
        ("204 No\r\nContent-Length: 5\r\n", false, Some(ReplyBody::None)),
        ("304 No\r\n", false, Some(ReplyBody::None)),
        ("200 OK\r\nTransfer-Encoding: Chunked\r\n", false, Some(ReplyBody::Chunked)),
        ("200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", false, None),
        ("200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n", false, None),
        ("200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", false, None),
        ("200 OK\r\nContent-Length: -5\r\n", false, None),
        ("200 OK\r\nContent-Length: 5, 5\r\n", true, None),
        ("200 OK\r\nContent-Length: 99999999999999999999\r\n", false, None),
    ];
    for (head, to_head, body) in table {
        let text = alloc::format!("HTTP/1.1 {head}\r\n").into_bytes();
        let parsed = parsed(&text).unwrap().head;
        assert_eq!(ReplyBody::of(&parsed, &text, to_head).ok(), body, "{head}");
    }
}

#[test]
fn closing() {
    for (fields, closes) in [
        ("", false),
        ("Connection: keep-alive\r\n", false),
        ("Connection: Close\r\n", true),
        ("Connection: foo\r\nConnection: bar, close\r\n", true),
    ] {
        let text = alloc::format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes();
        let Parsed { head, parser, .. } = parsed(&text).unwrap();
        assert_eq!(parser.closes(&head, &text), closes, "{fields}");
    }
    let text = b"HTTP/1.0 200 OK\r\n\r\n";
    let Parsed { head, parser, .. } = parsed(text).unwrap();
    assert!(parser.closes(&head, text));
}
