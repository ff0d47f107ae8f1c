//! What a client sees of a reply, so far as two servers must agree: a row on which they do not is
//! no comparison.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use crate::project;

/// How much of a differing answer is shown.
const SHOWN_MAX: usize = 60;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct BenchAnswer {
    status: String,
    /// In small letters and alphabetical order; values such as Date and ETag may differ.
    header_names: Vec<String>,
    body: Vec<u8>,
}

/// How long a datagram may take.
const DATAGRAM_MAX: Duration = Duration::from_secs(10);

/// Sends a datagram to the host and port of a URL.
pub(super) fn of_datagram(url: &str, body: &str) -> Result<BenchAnswer, String> {
    let echo = || -> std::io::Result<Vec<u8>> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(url.trim_start_matches("udp://"))?;
        socket.set_read_timeout(Some(DATAGRAM_MAX))?;
        socket.send(body.as_bytes())?;
        let mut answer = vec![0; 65_536];
        let len = socket.recv(&mut answer)?;
        answer.truncate(len);
        Ok(answer)
    };
    let body = echo().map_err(|err| format!("{url}: {err}"))?;
    Ok(BenchAnswer { status: String::new(), header_names: Vec::new(), body })
}

/// Asks for a URL as a client of HTTP/1.1, or of HTTP/2.
pub(super) fn of(url: &str, is_http2: bool) -> Result<BenchAnswer, String> {
    let version = if is_http2 { "--http2-prior-knowledge" } else { "--http1.1" };
    let mut curl = Command::new("curl");
    // What is compressed is compared by what is in it.
    curl.args(["-sSk", "-i", version, "--compressed", "--max-time", "10", url]);
    parse(&project::output(&mut curl)?).ok_or_else(|| format!("{url}: curl shows no header"))
}

fn parse(reply: &[u8]) -> Option<BenchAnswer> {
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&reply[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.to_owned();
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_lowercase();
    let mut header_names: Vec<String> = lines.map(name).collect();
    header_names.sort();
    Some(BenchAnswer { status, header_names, body: reply[end + 4..].to_vec() })
}

impl BenchAnswer {
    /// How this differs from what nginx answered; `None` where it does not.
    pub(super) fn difference(&self, nginx: &Self) -> Option<String> {
        if self.status != nginx.status {
            return Some(format!("\"{}\", nginx \"{}\"", self.status, nginx.status));
        }
        if self.header_names != nginx.header_names {
            let names = |answer: &Self| answer.header_names.join(" ");
            return Some(format!("headers {}, nginx {}", names(self), names(nginx)));
        }
        (self.body != nginx.body).then(|| format!("body {}, nginx {}", self.shown(), nginx.shown()))
    }

    #[cfg(test)]
    pub(super) fn of_test(status: &str) -> Self {
        Self { status: status.to_owned(), header_names: Vec::new(), body: Vec::new() }
    }

    fn shown(&self) -> String {
        let begin = &self.body[..self.body.len().min(SHOWN_MAX)];
        format!("of {} bytes \"{}\"", self.body.len(), begin.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(reply: &str) -> BenchAnswer {
        parse(reply.as_bytes()).expect("a whole header")
    }

    #[test]
    fn values_and_order_of_headers_may_differ() {
        let nginx = answer("HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: now\r\n\r\nhello");
        let weir = answer("HTTP/1.1 200 OK\r\nDate: then\r\nserver: weir\r\n\r\nhello");
        assert_eq!(weir.difference(&nginx), None);
    }

    #[test]
    fn status_header_names_and_body_may_not() {
        let nginx = answer("HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\nhello");
        for other in [
            "HTTP/1.1 404 Not Found\r\nServer: nginx\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nVia: a\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\nhallo",
        ] {
            assert!(answer(other).difference(&nginx).is_some(), "{other}");
        }
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
