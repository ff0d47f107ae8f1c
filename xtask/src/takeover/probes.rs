//! Requests to the four sites, whose replies must be the same from both servers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::project;

/// The status that is expected, options of curl, and a URL.
const PROBES: [(u16, &[&str]); 14] = [
    (200, &["http://localhost/"]),
    (301, &["http://www.example.com/a?b=c"]),
    (200, &["https://www.example.com/"]),
    (200, &["--http1.1", "https://www.example.com/pretty/path?x=1"]),
    (200, &["https://www.example.com/style.css"]),
    (200, &["http://app.example.com/x"]),
    (200, &["https://app.example.com/y?z"]),
    (200, &["--data", "name=value", "https://app.example.com/form"]),
    (401, &["https://docs.example.com/"]),
    (200, &["--user", "user:secret", "https://docs.example.com/"]),
    (200, &["http://files.example.com/"]),
    (200, &["--header", "Accept-Encoding: gzip", "http://files.example.com/data.txt"]),
    (301, &["http://files.example.com/folder"]),
    (404, &["http://files.example.com/missing"]),
];

/// How long an upgrade may take.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// All replies, without what always differs.
pub(super) fn replies() -> Result<Vec<String>, String> {
    let mut replies = Vec::new();
    for (status, words) in PROBES {
        let mut curl = Command::new("curl");
        // Every name is this machine's.
        curl.args(["-sSik", "--noproxy", "*", "--connect-to", "::127.0.0.1:"]).args(words);
        let reply = project::output(&mut curl)?;
        let reply = comparable(&reply);
        if reply.split_whitespace().nth(1) != Some(&status.to_string()) {
            return Err(format!("{} is answered by\n{reply}", words.join(" ")));
        }
        replies.push(format!("{}\n{reply}", words.join(" ")));
    }
    replies.push(format!("upgrade\n{}", upgraded()?));
    Ok(replies)
}

/// A reply without dates and versions. An error page is as long as its version.
fn comparable(reply: &[u8]) -> String {
    // What is compressed is compared by its length.
    let head_end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(reply.len());
    let (head, body) = reply.split_at(head_end);
    let head = String::from_utf8_lossy(head);
    let is_error = head.split_whitespace().nth(1).is_some_and(|status| !status.starts_with('2'));
    let is_compressed = head.to_ascii_lowercase().contains("content-encoding:");
    let always_differs = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        ["date", "server"].contains(&&*name)
            || is_error && name == "content-length"
            // nginx has had ranges of files of gzip_static since 1.23.4.
            || is_compressed && name == "accept-ranges"
    };
    let head: Vec<&str> = head.lines().filter(|line| !always_differs(line)).collect();
    format!("{}{}", head.join("\n"), without_versions(&String::from_utf8_lossy(body)))
}

/// `nginx/1.22.1` is `nginx`.
fn without_versions(text: &str) -> String {
    let mut pieces = text.split("nginx/");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out += "nginx";
        out += piece.trim_start_matches(|byte: char| byte.is_ascii_digit() || byte == '.');
    }
    out
}

/// What comes back over a connection that has been upgraded.
fn upgraded() -> Result<String, String> {
    let exchange = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect("127.0.0.1:80")?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let request = "GET /chat HTTP/1.1\r\nHost: app.example.com\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\n\r\n";
        stream.write_all(request.as_bytes())?;
        let (mut reply, mut buffer) = (Vec::new(), [0; 4096]);
        while !reply.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            match stream.read(&mut buffer)? {
                0 => break,
                length => reply.extend_from_slice(&buffer[..length]),
            }
        }
        stream.write_all(b"hello")?;
        let mut echo = [0; 5];
        stream.read_exact(&mut echo)?;
        let status = String::from_utf8_lossy(&reply).lines().next().unwrap_or_default().to_owned();
        Ok(format!("{status}, {}", String::from_utf8_lossy(&echo)))
    };
    exchange().map_err(|error| format!("an upgraded connection: {error}"))
}

/// Fails with the first reply that is another.
pub(super) fn compare(expected: &[String], found: &[String]) -> Result<(), String> {
    match expected.iter().zip(found).find(|(expected, found)| expected != found) {
        None => Ok(()),
        Some((expected, found)) => {
            Err(format!("another reply.\nBefore:\n{expected}\n\nNow:\n{found}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_always_differs_is_left_out() {
        let of = |server: &str, length: usize| {
            format!(
                "HTTP/1.1 404 Not Found\r\nServer: {server}\r\nDate: now\r\nContent-Length: \
                 {length}\r\nA: b\r\n\r\n<center>{server}</center>"
            )
        };
        let found = comparable(of("nginx/1.22.1", 5).as_bytes());
        assert_eq!(found, comparable(of("nginx/1.31.5", 6).as_bytes()));
        assert_eq!(found, "HTTP/1.1 404 Not Found\nA: b\r\n\r\n<center>nginx</center>");
        assert!(compare(&["a".into()], &["a".into()]).is_ok());
        assert!(compare(&["a".into()], &["b".into()]).is_err_and(|told| told.contains("Now:\nb")));
    }
}
