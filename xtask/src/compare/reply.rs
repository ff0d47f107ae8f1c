//! One reply in the bytes of a connection: where it ends, and how it is written down for comparing.
//!
//! Strict enough to see bad framing, since what does not parse is written down as it came. It does
//! not judge: two servers that err alike are alike.

use super::place::ServerEnvironment;
use super::{gzip, text, times};

/// How much of the bytes is the first reply.
#[derive(Debug, PartialEq)]
pub(super) enum Extent {
    /// This many bytes.
    Whole(usize),
    Partial,
    UntilClose,
}

/// The head of a reply and where its body begins.
struct Head<'a> {
    status_line: &'a [u8],
    fields: Vec<(&'a [u8], &'a [u8])>,
    length: usize,
}

impl<'a> Head<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Head<'a>> {
        let end = find(bytes, b"\r\n\r\n")?;
        let mut lines = split(&bytes[..end], b"\r\n").into_iter();
        let status_line = lines.next()?;
        let fields = lines.map(|line| match find(line, b": ") {
            Some(colon) => (&line[..colon], &line[colon + 2..]),
            None => (line, &b"(no colon)"[..]),
        });
        Some(Head { status_line, fields: fields.collect(), length: end + 4 })
    }

    fn status(&self) -> &[u8] {
        self.status_line.split(|&b| b == b' ').nth(1).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&'a [u8]> {
        let named = |(n, _): &&(&[u8], &[u8])| n.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().find(named).map(|(_, value)| *value)
    }

    fn chunked(&self) -> bool {
        self.field("Transfer-Encoding") == Some(b"chunked")
    }

    fn content_length(&self) -> Option<usize> {
        std::str::from_utf8(self.field("Content-Length")?).ok()?.parse().ok()
    }
}

/// How far the first reply in `bytes` reaches, `head` saying whether it answers HEAD.
pub(super) fn extent(bytes: &[u8], head: bool) -> Extent {
    if !bytes.starts_with(b"HTTP/") {
        let may_become = b"HTTP/".starts_with(&bytes[..bytes.len().min(5)]);
        return if may_become { Extent::Partial } else { Extent::UntilClose };
    }
    let Some(parsed) = Head::parse(bytes) else { return Extent::Partial };
    let bodiless = head || matches!(parsed.status(), [b'1', ..] | b"204" | b"304");
    let body = &bytes[parsed.length..];
    let length = match (bodiless, parsed.chunked(), parsed.content_length()) {
        (true, ..) => Some(0),
        (_, true, _) => dechunked(body).map(|chunks| chunks.length),
        (_, _, Some(length)) => Some(length).filter(|&length| length <= body.len()),
        _ => return Extent::UntilClose,
    };
    length.map_or(Extent::Partial, |length| Extent::Whole(parsed.length + length))
}

/// Whether the reply is a 1xx, which another one follows.
pub(super) fn is_interim(reply: &[u8]) -> bool {
    Head::parse(reply).is_some_and(|head| matches!(head.status(), [b'1', ..]))
}

/// Whether the reply has a status of 400 or above.
pub(super) fn is_error(reply: &[u8]) -> bool {
    Head::parse(reply).is_some_and(|head| matches!(head.status(), [b'4' | b'5', ..]))
}

/// Whether the reply says that its connection stays open.
pub(super) fn keeps_alive(reply: &[u8]) -> bool {
    Head::parse(reply).is_some_and(|head| head.field("Connection") == Some(b"keep-alive"))
}

/// The lines that are compared: what must vary from server to server is made alike.
pub(super) fn lines(reply: &[u8], place: &ServerEnvironment, sort_fields: bool) -> Vec<String> {
    let Some(head) = Head::parse(reply).filter(|_| reply.starts_with(b"HTTP/")) else {
        return body_lines(&place.blanked(reply));
    };
    let date = head.field("Date").and_then(times::parse_http_date);
    let mut fields: Vec<String> = head.fields.iter().map(|f| field_line(f, date, place)).collect();
    if sort_fields {
        fields.sort();
    }
    let mut out = vec![text::shown(head.status_line)];
    out.extend(fields);
    out.push(String::new());
    let (body, trailers) = body(reply, &head);
    out.extend(content_lines(&body, &head, place));
    let shown = |line: &Vec<u8>| format!("trailer {}", text::shown(&place.blanked(line)));
    out.extend(trailers.iter().map(shown));
    out
}

/// The lines of what the body says, whatever it is compressed to.
fn content_lines(body: &[u8], head: &Head<'_>, place: &ServerEnvironment) -> Vec<String> {
    let names_gzip = |(name, value): &(&[u8], &[u8])| {
        name.eq_ignore_ascii_case(b"Content-Encoding") && *value == b"gzip"
    };
    let is_gzip = head.fields.iter().any(names_gzip);
    let is_whole = head.field("Content-Range").is_none();
    match (is_gzip && is_whole).then(|| gzip::expanded(body)).flatten() {
        Some((text, broken)) if broken.is_none() || !text.is_empty() => {
            let mut lines = body_lines(&place.blanked(&text));
            lines.extend(broken);
            lines
        }
        _ => body_lines(&place.blanked(body)),
    }
}

fn field_line(
    (name, value): &(&[u8], &[u8]),
    date: Option<u64>,
    place: &ServerEnvironment,
) -> String {
    let value = match &*name.to_ascii_lowercase() {
        b"date" if date.is_some() => "DATE".into(),
        b"expires" => expires(value, date).unwrap_or_else(|| text::shown(&place.blanked(value))),
        // A length is no place, whatever digits it has.
        b"content-length" => text::shown(value),
        b"content-type" => text::shown(&place.blanked(&without_boundary(value, value))),
        _ => text::shown(&place.blanked(value)),
    };
    format!("{}: {value}", text::shown(name))
}

/// `expires 1h` follows the clock: what counts is its distance from Date.
fn expires(value: &[u8], date: Option<u64>) -> Option<String> {
    const FAR: u64 = 400 * 24 * 3600;
    let (expires, date) = (times::parse_http_date(value)?, date?);
    let near = expires.abs_diff(date) < FAR;
    near.then(|| format!("DATE {:+}", expires as i64 - date as i64))
}

/// The body and the lines of its trailers.
fn body(reply: &[u8], head: &Head<'_>) -> (Vec<u8>, Vec<Vec<u8>>) {
    let raw = &reply[head.length..];
    let content_type = head.field("Content-Type").unwrap_or_default();
    match dechunked(raw).filter(|_| head.chunked()) {
        Some(Chunks { length, body, trailers }) if length == raw.len() => {
            (body, trailers.into_iter().map(<[u8]>::to_vec).collect())
        }
        _ => (without_boundary(raw, content_type), vec![]),
    }
}

/// `bytes` without the boundary of multipart/byteranges, if `told` tells one. It is a number that
/// counts up from wherever the server began.
pub(super) fn without_boundary(bytes: &[u8], told: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"multipart/byteranges; boundary=";
    let Some(at) = told.windows(MARK.len()).position(|window| window == MARK) else {
        return bytes.to_vec();
    };
    let rest = &told[at + MARK.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text::replaced(bytes, &rest[..digits], b"BOUNDARY", |_, _| true)
}

/// A body in lines as they are compared.
pub(super) fn body_lines(body: &[u8]) -> Vec<String> {
    let lines = body.split_inclusive(|&b| b == b'\n');
    // The last line end is shown only where it is missing.
    lines
        .map(|l| match l.strip_suffix(b"\n") {
            Some(line) => text::shown(line),
            None => format!("{} (no line end)", text::shown(l)),
        })
        .collect()
}

pub(super) struct Chunks<'a> {
    /// The length of its encoded form.
    pub(super) length: usize,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<&'a [u8]>,
}

/// None while it is not complete, and for good where it is malformed.
pub(super) fn dechunked(bytes: &[u8]) -> Option<Chunks<'_>> {
    let mut chunks = Chunks { length: 0, body: Vec::new(), trailers: Vec::new() };
    loop {
        let digits = std::str::from_utf8(chunks.line(bytes)?).ok()?;
        let size = usize::from_str_radix(digits, 16).ok()?;
        if size == 0 {
            break;
        }
        let end = chunks.length.checked_add(size)?;
        chunks.body.extend_from_slice(bytes.get(chunks.length..end)?);
        chunks.length = end;
        chunks.line(bytes).filter(|rest| rest.is_empty())?;
    }
    loop {
        match chunks.line(bytes)? {
            [] => return Some(chunks),
            trailer => chunks.trailers.push(trailer),
        }
    }
}

impl Chunks<'_> {
    /// The next line, without its end.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let rest = &bytes[self.length..];
        let end = find(rest, b"\r\n")?;
        self.length += end + 2;
        Some(&rest[..end])
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn split<'a>(bytes: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = find(rest, by) {
        parts.push(&rest[..at]);
        rest = &rest[at + by.len()..];
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_where_its_framing_says() {
        let counted = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP";
        assert_eq!(extent(counted, false), Extent::Whole(counted.len() - 4));
        assert_eq!(extent(counted, true), Extent::Whole(counted.len() - 6));
        assert_eq!(extent(&counted[..39], false), Extent::Partial);
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        assert_eq!(extent(chunked, false), Extent::Whole(chunked.len()));
        assert_eq!(extent(&chunked[..chunked.len() - 1], false), Extent::Partial);
        assert_eq!(extent(b"HTTP/1.0 200 OK\r\n\r\nhi", false), Extent::UntilClose);
        assert_eq!(extent(b"HT", false), Extent::Partial);
        assert_eq!(extent(b"hello", false), Extent::UntilClose);
    }

    #[test]
    fn a_boundary_is_made_alike_wherever_it_is_told() {
        let line = b"206 multipart/byteranges; boundary=0007|7";
        assert_eq!(without_boundary(line, line), b"206 multipart/byteranges; boundary=BOUNDARY|7");
        assert_eq!(without_boundary(b"0007", b"multipart/mixed; boundary=0007"), b"0007");
    }

    #[test]
    fn what_varies_is_made_alike_and_the_rest_is_kept() {
        let place = ServerEnvironment::new("/tmp/d".into(), vec![12345], "1.2.3".into());
        let reply = b"HTTP/1.1 206 Partial Content\r\nServer: nginx/1.2.3\r\n\
            Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nExpires: Tue, 14 Nov 2023 22:14:20 GMT\r\n\
            Content-Type: multipart/byteranges; boundary=0007\r\nContent-Length: 12345\r\n\
            Location: http://a:12345/tmp/d\r\n\r\n--0007\r\nx";
        let expected = [
            "HTTP/1.1 206 Partial Content",
            "Server: nginx/%%VERSION%%",
            "Date: DATE",
            "Expires: DATE +60",
            "Content-Type: multipart/byteranges; boundary=BOUNDARY",
            "Content-Length: 12345",
            "Location: http://a:%%PORT%%%%DIR%%",
            "",
            "--BOUNDARY\\r",
            "x (no line end)",
        ];
        assert_eq!(lines(reply, &place, false), expected);
    }

    #[test]
    fn order_counts_unless_told_otherwise() {
        let place = ServerEnvironment::new("/d".into(), vec![], "1".into());
        let one = b"HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n";
        let two = b"HTTP/1.1 200 OK\r\nB: 2\r\nA: 1\r\n\r\n";
        assert_ne!(lines(one, &place, false), lines(two, &place, false));
        assert_eq!(lines(one, &place, true), lines(two, &place, true));
    }

    #[test]
    fn chunked_bodies_are_compared_by_what_they_carry() {
        let place = ServerEnvironment::new("/d".into(), vec![], "1".into());
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let one = format!("{head}2\r\nhi\r\n0\r\n\r\n");
        let two = format!("{head}1\r\nh\r\n1\r\ni\r\n0\r\n\r\n");
        let lines = |reply: &str| lines(reply.as_bytes(), &place, false);
        assert_eq!(lines(&one), lines(&two));
        assert_ne!(lines(&one), lines(&format!("{head}2\r\nhi\r\n")));
        let trailed = lines(&format!("{head}2\r\nhi\r\n0\r\nX: y\r\n\r\n"));
        assert_eq!(trailed[3..], ["hi (no line end)", "trailer X: y"]);
    }
}
