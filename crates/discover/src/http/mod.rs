//! A small HTTP/1.1 client that blocks, with a deadline for everything.
//!
//! Deliberately absent: redirects, proxies, compression.

mod place;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use wire::http1::chunked::{ChunkDecoded, ChunkedDecoder};
use wire::http1::response::{ReplyBody, ResponseHeadParser};
use wire::reply::ReplyHead;

pub use place::{HttpPlace, HttpStream, TlsIdentity};

/// The longest head of a reply.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The longest body that is kept.
const BODY_BYTES_MAX: usize = 256 << 20;
/// The bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Interim replies (1xx) before the final one.
const INTERIM_MAX: usize = 16;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    pub method: &'a str,
    /// After the base of the place.
    pub path: &'a str,
    pub fields: &'a [(&'a str, &'a str)],
    pub body: &'a str,
    /// How long the whole reply may take; of a stream, its head.
    pub reply_max: Duration,
}

impl<'a> HttpRequest<'a> {
    pub fn get(path: &'a str, reply_max: Duration) -> Self {
        Self { method: "GET", path, fields: &[], body: "", reply_max }
    }
}

/// A reply in memory.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }
}

/// A place with the connection that was last used.
pub struct HttpClient {
    place: HttpPlace,
    kept: Option<HttpStream>,
}

impl HttpClient {
    pub fn new(place: HttpPlace) -> Self {
        Self { place, kept: None }
    }

    pub fn place(&self) -> &HttpPlace {
        &self.place
    }

    /// Sends a request, which may be repeated on a new connection if the old one has ended.
    pub fn ask(&mut self, request: &HttpRequest<'_>) -> io::Result<HttpReply> {
        let until = Instant::now() + request.reply_max;
        if let Some(stream) = self.kept.take()
            && let Ok(reply) = self.ask_on(stream, request, until)
        {
            return Ok(reply);
        }
        let stream = self.place.connect(until)?;
        self.ask_on(stream, request, until)
    }

    fn ask_on(
        &mut self,
        stream: HttpStream,
        request: &HttpRequest<'_>,
        until: Instant,
    ) -> io::Result<HttpReply> {
        let (mut reply, mut body) = send(stream, &self.place, request, until)?;
        while body.read_more(&mut reply.body, until)? {
            if reply.body.len() > BODY_BYTES_MAX {
                return Err(io::Error::other("the reply is too long"));
            }
        }
        self.kept = body.into_kept();
        Ok(reply)
    }

    /// Sends a request whose reply is read as it comes, on a connection of its own.
    pub fn stream(&self, request: &HttpRequest<'_>) -> io::Result<(HttpReply, HttpBody)> {
        let until = Instant::now() + request.reply_max;
        send(self.place.connect(until)?, &self.place, request, until)
    }
}

fn send(
    mut stream: HttpStream,
    place: &HttpPlace,
    request: &HttpRequest<'_>,
    until: Instant,
) -> io::Result<(HttpReply, HttpBody)> {
    let HttpRequest { method, path, fields, body, .. } = request;
    let mut head = format!("{method} {}{path} HTTP/1.1\r\nHost: {}\r\n", place.base, place.host);
    for (name, value) in *fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || *method != "GET" {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    stream.set_deadline(until);
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    stream.flush()?;
    read_head(stream, until)
}

fn read_head(mut stream: HttpStream, until: Instant) -> io::Result<(HttpReply, HttpBody)> {
    let mut input = Vec::new();
    for _ in 0..INTERIM_MAX {
        let (mut parser, mut head) = (ResponseHeadParser::default(), ReplyHead::default());
        let length = loop {
            let parsed = parser.parse(&mut head, &input);
            match parsed.map_err(|_| io::Error::other("the reply is not HTTP"))? {
                Some(length) => break length,
                None if input.len() > HEAD_BYTES_MAX => {
                    return Err(io::Error::other("the head of the reply is too long"));
                }
                None => read_some(&mut stream, &mut input, until)?,
            }
        };
        let rest = input.split_off(length);
        if head.status < 200 {
            input = rest;
            continue;
        }
        let framing = ReplyBody::of(&head, &input, false);
        let framing = framing.map_err(|_| io::Error::other("the reply has no clear length"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = head.fields.iter();
        let fields =
            fields.map(|field| (text(field.name.of(&input)), text(field.value.of(&input))));
        let reply = HttpReply { status: head.status, fields: fields.collect(), body: Vec::new() };
        if reply.field("Content-Encoding").is_some_and(|coding| coding != "identity") {
            return Err(io::Error::other("the reply is compressed, which nobody asked for"));
        }
        let closes = parser.closes(&head, &input);
        return Ok((reply, HttpBody { stream, input: rest, left: BodyLeft::of(framing), closes }));
    }
    Err(io::Error::other("too many interim replies"))
}

fn read_some(stream: &mut HttpStream, input: &mut Vec<u8>, until: Instant) -> io::Result<()> {
    stream.set_deadline(until);
    let mut buffer = vec![0; READ_BYTES];
    match stream.read(&mut buffer) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => {
            input.extend_from_slice(&buffer[..count]);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error),
    }
}

/// The body of a reply on its way.
pub struct HttpBody {
    stream: HttpStream,
    /// What was read and not given out.
    input: Vec<u8>,
    left: BodyLeft,
    closes: bool,
}

enum BodyLeft {
    Bytes(u64),
    Chunks(ChunkedDecoder),
    UntilClose,
    Nothing,
}

impl BodyLeft {
    fn of(framing: ReplyBody) -> Self {
        match framing {
            ReplyBody::None | ReplyBody::Length(0) => Self::Nothing,
            ReplyBody::Length(bytes) => Self::Bytes(bytes),
            ReplyBody::Chunked => Self::Chunks(ChunkedDecoder::default()),
            ReplyBody::Close => Self::UntilClose,
        }
    }
}

impl HttpBody {
    /// Appends some bytes of the body. False: it has ended.
    pub fn read_more(&mut self, out: &mut Vec<u8>, until: Instant) -> io::Result<bool> {
        if matches!(self.left, BodyLeft::Nothing) {
            return Ok(false);
        }
        if self.input.is_empty() {
            let read = read_some(&mut self.stream, &mut self.input, until);
            let has_ended =
                read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
            if has_ended && matches!(self.left, BodyLeft::UntilClose) {
                self.left = BodyLeft::Nothing;
                return Ok(false);
            }
            read?;
        }
        self.decode(out)
    }

    fn decode(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        match &mut self.left {
            BodyLeft::Nothing => {}
            BodyLeft::UntilClose => out.append(&mut self.input),
            BodyLeft::Bytes(left) => {
                let count = self.input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                out.extend(self.input.drain(..count));
                *left -= count as u64;
                if *left == 0 {
                    self.left = BodyLeft::Nothing;
                }
            }
            BodyLeft::Chunks(decoder) => {
                let mut at = 0;
                loop {
                    let decoded = decoder.decode(&self.input[at..]);
                    match decoded.map_err(|_| io::Error::other("invalid chunks"))? {
                        ChunkDecoded::Data(range) => {
                            out.extend_from_slice(&self.input[at + range.start..at + range.end]);
                            at += range.end;
                        }
                        ChunkDecoded::More => {
                            self.input.clear();
                            break;
                        }
                        ChunkDecoded::Trailers(end) | ChunkDecoded::End(end) => {
                            self.input.drain(..at + end);
                            self.left = BodyLeft::Nothing;
                            break;
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// The connection, if another request may follow.
    fn into_kept(self) -> Option<HttpStream> {
        let may_go_on = matches!(self.left, BodyLeft::Nothing) && self.input.is_empty();
        (may_go_on && !self.closes).then_some(self.stream)
    }
}
