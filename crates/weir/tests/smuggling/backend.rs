//! A backend that reads as the RFCs say and in no other way: whatever two readers could read in two
//! ways is noted as malformed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use testing::{Peer, PeerConnection};

/// What came in, over all connections.
#[derive(Clone, Default)]
pub struct Received(Arc<Mutex<Vec<Came>>>);

#[derive(Debug)]
pub enum Came {
    Request {
        line: String,
        body: Vec<u8>,
    },
    /// Something else; why, and what it was.
    Malformed(&'static str, String),
}

impl Received {
    pub fn lock(&self) -> MutexGuard<'_, Vec<Came>> {
        self.0.lock().unwrap()
    }
}

/// Starts the backend. Its threads end with the test.
pub fn start() -> (SocketAddr, Received) {
    let received = Received::default();
    let all = received.clone();
    (Peer::playing(move |connection| serve(connection, &all)).address, received)
}

fn serve(mut connection: PeerConnection, received: &Received) {
    let mut bytes = Vec::new();
    loop {
        while !bytes.is_empty() {
            match request(&bytes) {
                Ok(None) => break,
                Ok(Some((came, length))) => {
                    received.lock().push(came);
                    bytes.drain(..length);
                    connection.send("HTTP/1.1 200 OK\nContent-Length: 2\n\nok");
                }
                Err(why) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    return received.lock().push(Came::Malformed(why, text));
                }
            }
        }
        let Some(more) = connection.take() else { return };
        bytes.extend(more);
    }
}

/// The first request in `bytes` and its length; `None`: there is more to come.
fn request(bytes: &[u8]) -> Result<Option<(Came, usize)>, &'static str> {
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "a head that is not ASCII")?;
    let is_odd = |byte: u8| byte.is_ascii_control() && byte != b'\t';
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    if head.split("\r\n").any(|line| line.bytes().any(is_odd)) {
        return Err("a control character");
    }
    if line.split(' ').count() != 3 || !line.ends_with(" HTTP/1.1") {
        return Err("a request line of other than three words");
    }
    let (mut length, mut chunked, mut hosts) = (None, false, 0);
    for field in lines {
        let (name, value) = field.split_once(':').ok_or("a line without colon")?;
        let is_token =
            |byte: u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("a name that is no token");
        }
        let value = value.trim_matches([' ', '\t']);
        match &name.to_ascii_lowercase()[..] {
            "host" => hosts += 1,
            "content-length" if length.is_some() => return Err("two lengths"),
            "content-length" if !value.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err("a length that is no number");
            }
            "content-length" => length = Some(value.parse::<usize>().map_err(|_| "a length")?),
            "transfer-encoding" if chunked => return Err("two codings"),
            "transfer-encoding" if value != "chunked" => return Err("an unknown coding"),
            "transfer-encoding" => chunked = true,
            _ => {}
        }
    }
    if hosts != 1 {
        return Err("not one Host");
    }
    let rest = &bytes[end + 4..];
    let (body, taken) = match (length, chunked) {
        (Some(_), true) => return Err("a length and a coding"),
        (None, true) => match dechunk(rest)? {
            Some(found) => found,
            None => return Ok(None),
        },
        (length, false) => match rest.get(..length.unwrap_or(0)) {
            Some(body) => (body.to_vec(), body.len()),
            None => return Ok(None),
        },
    };
    Ok(Some((Came::Request { line, body }, end + 4 + taken)))
}

/// Chunks without extensions and trailers: neither is passed on.
fn dechunk(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(end) = find(&bytes[at..], b"\r\n") else { return Ok(None) };
        let digits = std::str::from_utf8(&bytes[at..at + end]).unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("a chunk's size that is none");
        }
        let size = usize::from_str_radix(digits, 16).map_err(|_| "a chunk's size")?;
        at += end + 2;
        let Some(data) = bytes.get(at..at + size + 2) else { return Ok(None) };
        if !data.ends_with(b"\r\n") {
            return Err("a chunk that does not end");
        }
        body.extend_from_slice(&data[..size]);
        at += size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
