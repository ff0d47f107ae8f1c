//! What every server is asked for through Weir.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::notes::Notes;

/// The longest wait for a read or a write.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The longest time of one transfer.
const TRANSFER_MAX: Duration = Duration::from_secs(120);

const PIECE: usize = 1 << 20;

/// Requests on one connection.
const KEPT: usize = 100;

pub(super) struct BackendCheck {
    pub(super) address: SocketAddr,
    /// How large a download is.
    pub(super) bytes: u64,
}

/// A connection with what has been read of it.
pub(super) struct CheckConnection {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl BackendCheck {
    /// What is asked of every server that speaks HTTP.
    pub(super) fn in_every_way(&self, ranges: &str, notes: &mut Notes) -> Result<(), String> {
        notes.note("kept connections", self.keepalive())?;
        notes.note("ranges", self.ranges(ranges))?;
        for prefix in ["", "/streamed"] {
            notes.note(&format!("upload{prefix}"), self.upload(prefix, false))?;
            notes.note(&format!("download{prefix}"), self.download(&format!("{prefix}/sized")))?;
            notes.note(&format!("chunks{prefix}"), self.download(&format!("{prefix}/chunked")))?;
        }
        notes.note("upload in chunks", self.upload("", true))
    }

    /// Many requests on one connection.
    pub(super) fn keepalive(&self) -> Result<(), String> {
        let mut peer = self.open()?;
        for number in 0..KEPT {
            let (head, body) = peer.ask("GET /hello", "")?;
            if !head.starts_with("HTTP/1.1 200 ") || body != b"hello\n" {
                return Err(format!("request {number}: {head}"));
            }
        }
        Ok(())
    }

    /// From the middle, from the end, and past it.
    pub(super) fn ranges(&self, target: &str) -> Result<(), String> {
        let mut peer = self.open()?;
        let line = format!("GET {target}");
        for (range, expected, part) in [
            ("10-19", "bytes 10-19/1000", &b"0123456789"[..]),
            ("-5", "bytes 995-999/1000", b"56789"),
            ("998-", "bytes 998-999/1000", b"89"),
        ] {
            let (head, body) = peer.ask(&line, &format!("Range: bytes={range}\r\n"))?;
            let told = field(&head, "content-range");
            if told.as_deref() != Some(expected) || body != part {
                return Err(format!("{range}: {head}"));
            }
        }
        let (head, _) = peer.ask(&line, "Range: bytes=1000-\r\n")?;
        if head.starts_with("HTTP/1.1 416 ") { Ok(()) } else { Err(head) }
    }

    /// A body of a tenth of a download.
    pub(super) fn upload(&self, prefix: &str, chunked: bool) -> Result<(), String> {
        let mut peer = self.open()?;
        let size = self.bytes / 10;
        let framing = match chunked {
            true => "Transfer-Encoding: chunked".to_owned(),
            false => format!("Content-Length: {size}"),
        };
        peer.write(
            format!("PUT {prefix}/upload HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n").as_bytes(),
        )?;
        let (piece, end) = (vec![b'x'; PIECE], Instant::now() + TRANSFER_MAX);
        let mut left = size;
        while left > 0 {
            let next = left.min(PIECE as u64);
            if chunked {
                peer.write(format!("{next:x}\r\n").as_bytes())?;
            }
            peer.write(&piece[..next as usize])?;
            if chunked {
                peer.write(b"\r\n")?;
            }
            left -= next;
            in_time(end)?;
        }
        if chunked {
            peer.write(b"0\r\n\r\n")?;
        }
        let (head, body) = peer.reply()?;
        if body == format!("{size}\n").as_bytes() { Ok(()) } else { Err(head) }
    }

    /// Every byte of it is looked at, none is kept.
    pub(super) fn download(&self, target: &str) -> Result<(), String> {
        let mut peer = self.open()?;
        let bytes = self.bytes;
        let request = format!("GET {target}?bytes={bytes} HTTP/1.1\r\nHost: h\r\n\r\n");
        peer.write(request.as_bytes())?;
        let head = peer.head()?;
        let end = Instant::now() + TRANSFER_MAX;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(head);
        }
        if field(&head, "content-length").is_some() {
            peer.skip(bytes, end)?;
        } else {
            let mut came = 0;
            loop {
                let line = peer.line()?;
                let size = u64::from_str_radix(&line, 16).map_err(|_| format!("chunk {line}"))?;
                peer.skip(size, end)?;
                if !peer.line()?.is_empty() {
                    return Err("a chunk without an end".into());
                }
                if size == 0 {
                    break;
                }
                came += size;
            }
            if came != bytes {
                return Err(format!("{came} bytes of {bytes}"));
            }
        }
        // The connection serves on, so this was the end.
        peer.ask("GET /hello", "").map(|_| ())
    }

    pub(super) fn open(&self) -> Result<CheckConnection, String> {
        let stream = TcpStream::connect(self.address).map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        stream.set_read_timeout(Some(SILENCE_MAX)).map_err(said)?;
        stream.set_write_timeout(Some(SILENCE_MAX)).map_err(said)?;
        Ok(CheckConnection { stream, bytes: Vec::new() })
    }
}

impl CheckConnection {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(said)
    }

    pub(super) fn ask(&mut self, line: &str, fields: &str) -> Result<(String, Vec<u8>), String> {
        self.write(format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").as_bytes())?;
        self.reply()
    }

    /// A reply that fits into memory.
    pub(super) fn reply(&mut self) -> Result<(String, Vec<u8>), String> {
        let head = self.head()?;
        if let Some(length) = field(&head, "content-length") {
            let length = length.parse().map_err(|_| head.clone())?;
            return Ok((head, self.take(length)?));
        }
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(&line, 16).map_err(|_| head.clone())?;
            body.extend(self.take(size)?);
            self.line()?;
            if size == 0 {
                return Ok((head, body));
            }
        }
    }

    fn head(&mut self) -> Result<String, String> {
        let mut head = String::new();
        loop {
            match self.line()? {
                line if line.is_empty() => return Ok(head),
                line => head += &format!("{line}\r\n"),
            }
        }
    }

    fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.bytes.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill()?;
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, String> {
        while self.bytes.len() < length {
            self.fill()?;
        }
        Ok(self.bytes.drain(..length).collect())
    }

    /// Reads `length` bytes, which all have to be `x`.
    fn skip(&mut self, mut length: u64, end: Instant) -> Result<(), String> {
        let mut buffer = vec![0; PIECE];
        let at_hand = (self.bytes.len() as u64).min(length) as usize;
        are_x(&self.bytes[..at_hand])?;
        self.bytes.drain(..at_hand);
        length -= at_hand as u64;
        while length > 0 {
            let room = length.min(PIECE as u64) as usize;
            let read = match self.stream.read(&mut buffer[..room]).map_err(said)? {
                0 => return Err(format!("cut off {length} bytes before the end")),
                read => read,
            };
            are_x(&buffer[..read])?;
            length -= read as u64;
            in_time(end)?;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), String> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer).map_err(said)? {
            0 => Err("cut off".into()),
            length => {
                self.bytes.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }
}

fn are_x(bytes: &[u8]) -> Result<(), String> {
    const XS: [u8; 4096] = [b'x'; 4096];
    match bytes.chunks(XS.len()).all(|chunk| chunk == &XS[..chunk.len()]) {
        true => Ok(()),
        false => Err("another byte than was sent".into()),
    }
}

fn in_time(end: Instant) -> Result<(), String> {
    if Instant::now() < end { Ok(()) } else { Err(format!("not done in {TRANSFER_MAX:?}")) }
}

fn said(error: std::io::Error) -> String {
    error.to_string()
}

fn field(head: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    };
    head.lines().find_map(value)
}
