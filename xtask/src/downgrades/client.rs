//! Sends one request over HTTP/2, and notes the status.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::requests::{Downgrade, PlainField};
use crate::attacks::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame,
};

const STREAM: u32 = 1;
/// A server that says nothing has taken the request for an unfinished one.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The status of the answer, if there is one.
pub(super) fn ask(address: SocketAddr, request: &Downgrade) -> std::io::Result<Option<u16>> {
    let mut client = TcpStream::connect(address)?;
    client.write_all(&bytes_of(request))?;
    let end = Instant::now() + ANSWER_MAX;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16_384]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        client.set_read_timeout(Some(left))?;
        let count = client.read(&mut buffer).unwrap_or(0);
        bytes.extend_from_slice(&buffer[..count]);
        let answer = answer(&bytes);
        if answer.is_some() || count == 0 {
            return Ok(answer.flatten());
        }
    }
}

fn bytes_of(request: &Downgrade) -> Vec<u8> {
    let ends = |is_last: bool| if is_last { END_STREAM } else { 0 };
    let fields = block(request.pseudo.iter().chain(request.fields));
    let flags = END_HEADERS | ends(request.body.is_none());
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(SETTINGS, ACK, 0, &[])].concat();
    bytes.extend(frame(HEADERS, flags, STREAM, &fields));
    if let Some(body) = request.body {
        bytes.extend(frame(DATA, ends(request.trailers.is_empty()), STREAM, body));
    }
    if !request.trailers.is_empty() {
        let trailers = block(request.trailers.iter());
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, STREAM, &trailers));
    }
    bytes
}

/// Literals without a table (RFC 7541, section 6.2.2), which are shorter than 127 bytes.
fn block<'f>(fields: impl Iterator<Item = &'f PlainField>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text);
        }
    }
    block
}

/// `Some` once the stream or the connection is over: with the status, if there was a head.
fn answer(bytes: &[u8]) -> Option<Option<u16>> {
    let (mut rest, mut status) = (bytes, None);
    loop {
        let (head, behind) = rest.split_first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let (payload, behind) = behind.split_at_checked(length)?;
        if kind == HEADERS {
            status = status.or(status_of(payload));
        }
        let ends = matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0;
        if ends || matches!(kind, RST_STREAM | GOAWAY) {
            return Some(status);
        }
        rest = behind;
    }
}

/// The status that a header block begins with, the first of its connection.
fn status_of(block: &[u8]) -> Option<u16> {
    let at = block.iter().position(|byte| !is_size_update(*byte))?;
    match block[at..] {
        // Fields 8 to 14 of the static table.
        [byte @ 0x88..=0x8e, ..] => {
            Some([200, 204, 206, 304, 400, 404, 500][usize::from(byte - 0x88)])
        }
        [0x08 | 0x18 | 0x48, 3, a, b, c, ..] => std::str::from_utf8(&[a, b, c]).ok()?.parse().ok(),
        [0x08 | 0x18 | 0x48, length @ 0x80..=0xff, ..] => {
            let text = block.get(at + 2..at + 2 + usize::from(length & 0x7f))?;
            digits(text).parse().ok()
        }
        _ => None,
    }
}

/// One that is a single byte; servers send 0 and nothing else.
fn is_size_update(byte: u8) -> bool {
    byte & 0xe0 == 0x20
}

/// Digits in Huffman coding (RFC 7541, appendix B): 0 to 2 have five bits, the others six.
fn digits(coded: &[u8]) -> String {
    let bits: Vec<u8> =
        coded.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let value = |bits: &[u8]| bits.iter().fold(0, |value, bit| value << 1 | bit);
    let (mut rest, mut text) = (&bits[..], String::new());
    while let Some(five) = rest.get(..5).map(value) {
        let (digit, length) = match rest.get(..6).map(value) {
            _ if five < 3 => (five, 5),
            Some(six @ 0b01_1001..=0b01_1111) => (six - 0b01_1001 + 3, 6),
            _ => break,
        };
        text.push(char::from(b'0' + digit));
        rest = &rest[length..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_status_is_read() {
        for (block, status) in [
            (&b"\x88"[..], Some(200)),
            (b"\x20\x8c\x00", Some(400)),
            (b"\x08\x03405", Some(405)),
            (b"\x48\x83\x68\x0d\xff", Some(405)),
            (b"\x48\x82\x10\x03", Some(201)),
            (b"\x40\x01a\x01b", None),
        ] {
            assert_eq!(status_of(block), status, "{block:?}");
        }
    }
}
