//! How many requests a script's bytes are: it may return several at once, to be pipelined.
//!
//! Only where each ends is looked at; what a server would say to them is the server's business.

use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder};
use wire::http1::request::{HeadError, HeadProgress, RequestHeadParser};
use wire::request::{Field, HeadLimits, RequestHead};
use wire::{Known, Slice};

use super::ScriptError;

/// Header lines in one request.
const FIELDS_MAX: usize = 10_000;

/// Counts the requests in `bytes`, which must be whole requests and at least one.
pub fn requests_in(bytes: &[u8]) -> Result<usize, ScriptError> {
    let mut head = RequestHead::default();
    let mut start = 0;
    let mut count = 0;
    while start < bytes.len() {
        let rest = &bytes[start..];
        let length = length(&mut head, rest).map_err(|wrong| wrong.locate(bytes, start))?;
        start += length;
        count += 1;
    }
    match count {
        0 => Err(ScriptMistake { what: "no request", at: 0 }.locate(bytes, 0)),
        _ => Ok(count),
    }
}

struct ScriptMistake {
    what: &'static str,
    at: usize,
}

impl ScriptMistake {
    /// As an error about all bytes, of which those from `start` on were looked at.
    fn locate(self, bytes: &[u8], start: usize) -> ScriptError {
        let before = &bytes[..(start + self.at).min(bytes.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        ScriptError::new(format!("request() returned {} at {line}:{column}", self.what))
    }
}

/// The length of the first request of `bytes`.
fn length(head: &mut RequestHead, bytes: &[u8]) -> Result<usize, ScriptMistake> {
    head.reset();
    let mut parser = RequestHeadParser::default();
    let incomplete = ScriptMistake { what: "an incomplete request", at: bytes.len() };
    let length = match parser.parse(head, bytes, &limits(bytes.len())) {
        Ok(HeadProgress::Complete { len }) => len,
        Ok(_) => return Err(incomplete),
        Err(error) => {
            return Err(ScriptMistake {
                what: "an invalid request",
                at: place(head, &parser, &error),
            });
        }
    };
    let invalid = |field: &Field| ScriptMistake {
        what: "a request with an invalid length",
        at: field.value.start as usize,
    };
    if let Some(coding) = head.field(Known::TransferEncoding) {
        return chunked(&bytes[length..])
            .map(|body| length + body)
            .ok_or(ScriptMistake { at: coding.value.start as usize, ..incomplete });
    }
    let body = match head.field(Known::ContentLength) {
        None => 0,
        Some(field) => number(field.value, bytes).ok_or_else(|| invalid(field))?,
    };
    match length.checked_add(body) {
        Some(end) if end <= bytes.len() => Ok(end),
        _ => Err(incomplete),
    }
}

/// Where in the head an error lies: the byte of a field that is wrong, or else the line.
fn place(head: &RequestHead, parser: &RequestHeadParser, error: &HeadError) -> usize {
    match error {
        HeadError::InvalidFieldLine(line) => line.end as usize,
        _ if head.line.is_empty() => 0,
        _ => parser.parsed_to(),
    }
}

/// No limit but the size of what is there.
fn limits(size: usize) -> HeadLimits {
    HeadLimits {
        client_header_buffer_size: size.saturating_add(1),
        large_client_header_buffers: (1, size.saturating_add(1)),
        max_headers: FIELDS_MAX,
        ignore_invalid_headers: false,
        ..HeadLimits::default()
    }
}

fn number(value: Slice, bytes: &[u8]) -> Option<usize> {
    str::from_utf8(value.of(bytes)).ok()?.parse().ok()
}

/// The length of a chunked body.
fn chunked(bytes: &[u8]) -> Option<usize> {
    let mut decoder = ChunkedDecoder::default();
    let mut at = 0;
    loop {
        match decoder.decode(&bytes[at..]).ok()? {
            ChunkDecoded::Data(data) => at += data.end,
            ChunkDecoded::End(end) => return Some(at + end),
            ChunkDecoded::More | ChunkDecoded::Trailers(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &str) -> String {
        requests_in(bytes.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn requests_follow_each_other() {
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(requests_in(get.as_bytes()), Ok(1));
        assert_eq!(requests_in(format!("{get}{post}{chunks}{get}").as_bytes()), Ok(4));
    }

    #[test]
    fn a_large_head_is_one_request() {
        let request =
            format!("GET /{} HTTP/1.1\r\nA: {}\r\n\r\n", "p".repeat(9000), "a".repeat(70_000));
        assert_eq!(requests_in(request.as_bytes()), Ok(1));
    }

    #[test]
    fn an_invalid_request_is_reported_with_its_position() {
        let table = [
            ("", "no request at 1:1"),
            ("GET / HTTP/1.1\r\nHost: h\r\n", "an incomplete request at 3:1"),
            ("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc", "an incomplete request at 4:4"),
            (
                "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                "a request with an invalid length at 2:17",
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
                "an incomplete request at 2:20",
            ),
            ("GET / HTTP/1.1\r\n\r\nget /\r\n\r\n", "an invalid request at 3:1"),
            ("GET / HTTP/1.1\r\nA\u{1}: b\r\n\r\n", "an invalid request at 2:2"),
        ];
        for (bytes, expected) in table {
            assert_eq!(refused(bytes), format!("request() returned {expected}"), "{bytes:?}");
        }
    }
}
