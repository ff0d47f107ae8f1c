//! A client of HTTP/1.1 that tells how its reply has ended.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::reply::{BODY, LARGE_BYTES};

const REPLY_MAX: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientReply {
    /// 200 with the whole body.
    Served,
    /// A reply that is whole by its framing, with this status.
    Status(u16),
    /// A reply that ended before its framing says, which the client notices.
    Cut,
    /// 200, whole by its framing, with a body that is not the server's.
    Wrong,
}

impl fmt::Display for ClientReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served => f.pad("served"),
            Self::Status(status) => f.pad(&format!("status {status}")),
            Self::Cut => f.pad("cut"),
            Self::Wrong => f.pad("a wrong body"),
        }
    }
}

pub(super) fn get(socket: &Path, path: &str) -> io::Result<ClientReply> {
    let mut client = connect(socket)?;
    client.write_all(format!("GET {path} {REST}\r\n").as_bytes())?;
    read(client)
}

/// Reads the reply once `may_read` is set.
pub(super) fn post(
    socket: &Path,
    body_bytes: usize,
    may_read: &AtomicBool,
) -> io::Result<ClientReply> {
    let mut client = connect(socket)?;
    let head = format!("POST /post {REST}Content-Length: {body_bytes}\r\n\r\n");
    // A server that answers early may not read all of it.
    let _ = client.write_all(&[head.into_bytes(), vec![b'x'; body_bytes]].concat());
    while !may_read.load(Ordering::SeqCst) {
        thread::sleep(LOOK);
    }
    read(client)
}

const REST: &str = "HTTP/1.1\r\nHost: one\r\nConnection: close\r\n";

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let client = UnixStream::connect(socket)?;
    client.set_read_timeout(Some(REPLY_MAX))?;
    client.set_write_timeout(Some(REPLY_MAX))?;
    Ok(client)
}

fn read(mut client: UnixStream) -> io::Result<ClientReply> {
    let mut reply = Vec::new();
    match client.read_to_end(&mut reply) {
        Ok(_) => {}
        Err(err) if err.kind() == io::ErrorKind::ConnectionReset => {}
        Err(err) => return Err(err),
    }
    Ok(end_of(&reply))
}

fn end_of(reply: &[u8]) -> ClientReply {
    let Some(length) = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return ClientReply::Cut;
    };
    let head = String::from_utf8_lossy(&reply[..length]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = &reply[length + 4..];
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let body = match length {
        Some(length) => (body.len() == length).then(|| body.to_vec()),
        None if head.contains("transfer-encoding: chunked") => unchunked(body),
        None => Some(body.to_vec()),
    };
    let Some(body) = body else { return ClientReply::Cut };
    let is_large = || body.len() == LARGE_BYTES && body.iter().all(|byte| *byte == b'x');
    match status {
        200 if body == BODY || is_large() => ClientReply::Served,
        200 => ClientReply::Wrong,
        status => ClientReply::Status(status),
    }
}

/// `None` if the last chunk is missing.
fn unchunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let line = body.windows(2).position(|bytes| bytes == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(body.get(line + 2..line + 2 + size)?);
        body = body.get(line + size + 4..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_cut_is_no_whole_one() {
        let ends = |text: &str| end_of(text.as_bytes());
        assert_eq!(
            ends("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"),
            ClientReply::Served
        );
        assert_eq!(ends("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhell"), ClientReply::Cut);
        assert_eq!(ends("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell"), ClientReply::Wrong);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello\n\r\n";
        assert_eq!(ends(chunked), ClientReply::Cut);
        assert_eq!(ends(&format!("{chunked}0\r\n\r\n")), ClientReply::Served);
        assert_eq!(ends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), ClientReply::Cut);
        assert_eq!(ends("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"), ClientReply::Status(502));
        assert_eq!(ends("HTTP/1.1 2"), ClientReply::Cut);
    }
}
