//! One request at a control socket.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::messages::{Reported, complain};

/// How long a reply may take; a reload reads the whole configuration.
const REPLY_MAX: Duration = Duration::from_secs(600);
/// The longest reply.
const REPLY_BYTES_MAX: u64 = 256 << 20;

pub struct ControlClient {
    /// The command that asks, for errors.
    command: &'static str,
    socket: PathBuf,
    owner: Option<String>,
}

/// The path of a socket, as `control_socket` or as a file.
pub fn socket_path(word: &OsStr) -> PathBuf {
    let bytes = word.as_encoded_bytes();
    conf::bytes_path(bytes.strip_prefix(b"unix:").unwrap_or(bytes)).to_owned()
}

pub struct ControlReply {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl ControlClient {
    pub fn at(command: &'static str, socket: PathBuf, owner: Option<String>) -> Self {
        Self { command, socket, owner }
    }

    /// Whether a server has the socket.
    pub fn is_served(&self) -> bool {
        UnixStream::connect(&self.socket).is_ok()
    }

    /// Sends a request with a body of JSON, and reads the reply.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<ControlReply, Reported> {
        let (command, socket) = (self.command, self.socket.display());
        let reply = self.exchange(method, path, body.unwrap_or_default());
        let reply =
            reply.map_err(|error| complain(format_args!("{command}: {socket}: {error}")))?;
        parse(&reply)
            .ok_or_else(|| complain(format_args!("{command}: {socket}: not a reply of HTTP")))
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(REPLY_MAX))?;
        stream.set_write_timeout(Some(REPLY_MAX))?;
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some(owner) = &self.owner {
            head.push_str(&format!("Weir-Owner: {owner}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
        let mut reply = Vec::new();
        stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply)?;
        Ok(reply)
    }
}

fn parse(reply: &[u8]) -> Option<ControlReply> {
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&reply[..end]).ok()?.to_owned();
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let body = &reply[end + 4..];
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).ok()? };
    Some(ControlReply { status, head, body })
}

impl ControlReply {
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What is to be known about a change that was made. `kept_by`: what would keep it.
    pub fn notes(&self, kept_by: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.head.contains("\r\nWeir-Persistence: none") {
            notes.push(format!("the next start undoes this change; {kept_by} keeps it"));
        }
        if let Some((_, rest)) = self.head.split_once("\r\nWeir-Pending: ") {
            let count = rest.lines().next().unwrap_or_default();
            notes.push(format!("{count} worker processes have not made the change yet"));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_and_others_are_not() {
        let reply = parse(b"HTTP/1.1 201 Created\r\nWeir-Persistence: none\r\n\r\n{\"id\":1}");
        let reply = reply.unwrap();
        assert_eq!((reply.status, reply.body["id"].as_u64()), (201, Some(1)));
        assert_eq!(reply.notes("x").len(), 1);
        assert!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().notes("x").is_empty());
        for wrong in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 2\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n{"] {
            assert!(parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
