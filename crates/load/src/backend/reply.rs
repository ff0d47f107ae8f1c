//! A reply as bytes, composed once and sent many times.
//!
//! A small reply is one piece. A large one is a head, a block that is repeated, and a tail, so that
//! its length costs no memory.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use wire::http1::chunked::{ChunkHead, LAST_CHUNK};
use wire::status_text;

/// The most pieces in one write.
pub(super) const PIECES_MAX: usize = 16;
/// The longest reply that is one piece.
const JOINED_MAX: u64 = 16 * 1024;
/// The length of the block that bodies of a given size repeat, and of their chunks.
const BLOCK: usize = 26 * 2520;

#[derive(Clone)]
pub(super) struct ReplyContents {
    pub(super) status: u16,
    /// `Name: value`
    pub(super) headers: Vec<String>,
    /// The body's bytes, repeated or cut to its length.
    pub(super) block: Arc<[u8]>,
    /// The length of the body.
    pub(super) length: u64,
    /// Whether the body is chunked for HTTP/1.1.
    pub(super) chunked: bool,
}

impl ReplyContents {
    /// A reply with these bytes as its body.
    pub(super) fn of(bytes: impl Into<Arc<[u8]>>) -> Self {
        let block = bytes.into();
        let length = block.len() as u64;
        Self { status: 200, headers: Vec::new(), block, length, chunked: false }
    }

    /// A reply with a body of that length: the letters from a to z, repeated.
    pub(super) fn pattern(length: u64) -> Self {
        let block: Arc<[u8]> = (b'a'..=b'z').cycle().take(BLOCK).collect();
        Self { length, ..Self::of(block) }
    }

    /// A reply with a status, and its name as the body.
    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::of(format!("{}\n", phrase(status).trim_end()).into_bytes()) }
    }
}

/// `200 OK`; for a status without a name, the number and a space.
fn phrase(status: u16) -> String {
    status_text(status).map_or_else(|| format!("{status} "), str::to_owned)
}

/// The request that a reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestFormat {
    /// Whether it is HTTP/1.1, not HTTP/1.0.
    pub(super) is_11: bool,
    /// Whether the client keeps the connection.
    pub(super) keeps: bool,
}

pub(super) struct BackendReply {
    pub(super) status: u16,
    /// Whether the connection is closed after it.
    pub(super) closes: bool,
    head_length: u64,
    /// The head; the whole reply if it is small.
    first: Vec<u8>,
    block: Arc<[u8]>,
    repeated: u64,
    tail: Vec<u8>,
}

impl BackendReply {
    /// Composes the reply with this content for a kind of client.
    pub(super) fn new(content: &ReplyContents, client: RequestFormat) -> Self {
        // These never have a body (RFC 9112, section 6.3).
        let has_body = !matches!(content.status, 204 | 304);
        let framing = match (has_body, content.chunked, client.is_11) {
            (false, ..) => BodyFraming::NoBody,
            (true, false, _) => BodyFraming::Length(content.length),
            (true, true, true) => BodyFraming::Chunks,
            (true, true, false) => BodyFraming::Close,
        };
        let closes = !client.keeps || framing == BodyFraming::Close;
        let head = head(content, &framing, closes, client).into_bytes();
        let mut reply = Self {
            status: content.status,
            closes,
            head_length: head.len() as u64,
            first: head,
            block: content.block.clone(),
            repeated: if has_body { content.length } else { 0 },
            tail: Vec::new(),
        };
        if framing == BodyFraming::Chunks {
            reply.cut_in_chunks();
        }
        reply.join();
        reply
    }

    pub(super) fn length(&self) -> u64 {
        self.repeated_to() + self.tail.len() as u64
    }

    /// The middle of the body, or of the head if there is no body, as for HEAD.
    pub(super) fn middle(&self, is_to_head: bool) -> u64 {
        match self.length() - self.head_length {
            body if body > 0 && !is_to_head => self.head_length + body / 2,
            _ => self.head_length / 2,
        }
    }

    /// The end of the reply; for HEAD, the end of the head.
    pub(super) fn end(&self, is_to_head: bool) -> u64 {
        if is_to_head { self.head_length } else { self.length() }
    }

    /// Fills `room` with pieces of a part of the reply, as far as it has room. Returns the number
    /// of pieces and bytes.
    pub(super) fn pieces<'r>(
        &'r self,
        part: Range<u64>,
        pieces: &mut [IoSlice<'r>; PIECES_MAX],
    ) -> (usize, u64) {
        let (mut count, mut at) = (0, part.start);
        while count < PIECES_MAX && at < part.end {
            let rest = self.from(at);
            let length = (rest.len() as u64).min(part.end - at);
            pieces[count] = IoSlice::new(&rest[..length as usize]);
            (count, at) = (count + 1, at + length);
        }
        (count, at - part.start)
    }

    /// The bytes from `at` to the end of their piece.
    fn from(&self, at: u64) -> &[u8] {
        let (first, repeated_to) = (self.first.len() as u64, self.repeated_to());
        if at < first {
            &self.first[at as usize..]
        } else if at < repeated_to {
            let block = &self.block[((at - first) % self.block.len() as u64) as usize..];
            let length = (repeated_to - at).min(block.len() as u64);
            &block[..length as usize]
        } else {
            &self.tail[(at - repeated_to) as usize..]
        }
    }

    fn repeated_to(&self) -> u64 {
        self.first.len() as u64 + self.repeated
    }

    /// Makes each block a chunk; a shorter rest is in the tail.
    fn cut_in_chunks(&mut self) {
        let plain = std::mem::replace(&mut self.block, [].into());
        let chunk =
            |bytes: &[u8]| [ChunkHead::new(bytes.len() as u64).as_ref(), bytes, b"\r\n"].concat();
        let size = plain.len() as u64;
        let (whole, rest) = match size {
            0 => (0, 0),
            _ => (self.repeated / size, (self.repeated % size) as usize),
        };
        self.block = chunk(&plain).into();
        self.repeated = whole * self.block.len() as u64;
        if rest > 0 {
            self.tail.extend(chunk(&plain[..rest]));
        }
        self.tail.extend_from_slice(LAST_CHUNK);
    }

    fn join(&mut self) {
        let length = self.length();
        if length > JOINED_MAX {
            return;
        }
        let mut all = Vec::with_capacity(length as usize);
        while (all.len() as u64) < length {
            all.extend_from_slice(self.from(all.len() as u64));
        }
        (self.first, self.repeated, self.tail) = (all, 0, Vec::new());
    }
}

/// How the client finds the end of a body.
#[derive(PartialEq)]
enum BodyFraming {
    NoBody,
    Length(u64),
    Chunks,
    /// By the end of the connection, because HTTP/1.0 has no chunks.
    Close,
}

fn head(
    content: &ReplyContents,
    framing: &BodyFraming,
    closes: bool,
    client: RequestFormat,
) -> String {
    let mut head = format!("HTTP/1.1 {}\r\n", phrase(content.status));
    for line in &content.headers {
        head.extend([line.as_str(), "\r\n"]);
    }
    match framing {
        BodyFraming::NoBody | BodyFraming::Close => {}
        BodyFraming::Length(length) => {
            head.extend(["Content-Length: ", &length.to_string(), "\r\n"])
        }
        BodyFraming::Chunks => head.push_str("Transfer-Encoding: chunked\r\n"),
    }
    match (closes, client.is_11) {
        (true, _) => head.push_str("Connection: close\r\n"),
        (false, false) => head.push_str("Connection: keep-alive\r\n"),
        (false, true) => {}
    }
    head.push_str("\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: RequestFormat = RequestFormat { is_11: true, keeps: true };

    /// A reply up to `upto`, written `most` bytes at a time.
    fn written(reply: &BackendReply, upto: u64, most: u64) -> Vec<u8> {
        let mut all = Vec::new();
        while (all.len() as u64) < upto {
            let at = all.len() as u64;
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let (count, bytes) = reply.pieces(at..upto.min(at.saturating_add(most)), &mut pieces);
            let before = all.len();
            pieces[..count].iter().for_each(|piece| all.extend_from_slice(piece));
            assert_eq!((all.len() - before) as u64, bytes);
            assert!(bytes > 0);
        }
        all
    }

    fn text(content: &ReplyContents, client: RequestFormat) -> (String, bool) {
        let reply = BackendReply::new(content, client);
        let all = written(&reply, reply.length(), u64::MAX);
        (String::from_utf8(all).unwrap(), reply.closes)
    }

    #[test]
    fn heads() {
        let fixed = ReplyContents { headers: vec!["A: b".into()], ..ReplyContents::of(*b"hi") };
        let chunked = ReplyContents { chunked: true, ..fixed.clone() };
        let (old, last) =
            (RequestFormat { is_11: false, keeps: true }, RequestFormat { keeps: false, ..MODERN });
        for (content, client, expected, closes) in [
            (&fixed, MODERN, "Content-Length: 2\r\n\r\nhi", false),
            (&fixed, old, "Content-Length: 2\r\nConnection: keep-alive\r\n\r\nhi", false),
            (&fixed, last, "Content-Length: 2\r\nConnection: close\r\n\r\nhi", true),
            (&chunked, MODERN, "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", false),
            (&chunked, old, "Connection: close\r\n\r\nhi", true),
        ] {
            let expected = format!("HTTP/1.1 200 OK\r\nA: b\r\n{expected}");
            assert_eq!(text(content, client), (expected, closes), "{client:?}");
        }
        let none = ReplyContents { status: 204, ..fixed };
        let expected = "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n";
        assert_eq!(text(&none, MODERN), (expected.into(), false));
        let unknown = "HTTP/1.1 299 \r\nContent-Length: 4\r\n\r\n299\n";
        assert_eq!(text(&ReplyContents::status(299), MODERN), (unknown.into(), false));
    }

    #[test]
    fn a_body_of_any_length_is_the_alphabet() {
        let block = BLOCK as u64;
        for length in [0, 1, 100, block - 1, block, block + 1, 20 * block + 7] {
            let reply = BackendReply::new(&ReplyContents::pattern(length), MODERN);
            for most in [u64::MAX, 50_000] {
                let all = written(&reply, reply.length(), most);
                let body = &all[reply.end(true) as usize..];
                assert_eq!(body.len() as u64, length);
                let is_right = |(byte, at): (&u8, usize)| *byte == b'a' + (at % 26) as u8;
                assert!(body.iter().zip(0..).all(is_right), "{length}");
            }
        }
    }

    #[test]
    fn chunked_bodies_are_decoded_to_the_same_bytes() {
        let block = BLOCK as u64;
        for length in [0, 1, 70_000, block, 3 * block] {
            let content = ReplyContents { chunked: true, ..ReplyContents::pattern(length) };
            let reply = BackendReply::new(&content, MODERN);
            let all = written(&reply, reply.length(), u64::MAX);
            let mut rest = &all[reply.end(true) as usize..];
            let mut found = 0;
            let mut decoder = wire::http1::chunked::ChunkedDecoder::default();
            loop {
                use wire::http1::chunked::ChunkDecoded;
                match decoder.decode(rest).unwrap() {
                    ChunkDecoded::Data(part) => {
                        found += part.len() as u64;
                        rest = &rest[part.end..];
                    }
                    other => break assert_eq!(other, ChunkDecoded::End(rest.len())),
                }
            }
            assert_eq!(found, length);
        }
    }

    #[test]
    fn large_bodies_cost_no_memory() {
        let reply = BackendReply::new(&ReplyContents::pattern(100 << 30), MODERN);
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let last = reply.length() - 3;
        assert_eq!(reply.pieces(last..reply.length(), &mut pieces), (1, 3));
        assert_eq!(reply.middle(false) - reply.end(true), 50 << 30);
    }

    #[test]
    fn the_middle_without_a_body_is_in_the_head() {
        let reply = BackendReply::new(&ReplyContents::of(*b""), MODERN);
        assert!((1..reply.end(true)).contains(&reply.middle(false)));
        let to_head = BackendReply::new(&ReplyContents::of(*b"body"), MODERN).middle(true);
        assert_eq!(to_head, reply.middle(false));
    }
}
