//! One client: a request, its reply looked at, the next request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{BACKENDS, Tally};

/// A reply takes at most so long.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// What is asked, in turn. Those to `/once` are not repeated once any of them was sent.
const REQUESTS: [&str; 8] = [
    "GET /",
    "GET /all/",
    "PUT /",
    "DELETE /",
    "POST /once",
    "POST /all/",
    "PATCH /once",
    "LOCK /once",
];

const BODY: &str = "a body of thirty-one characters";

pub struct Client<'a> {
    number: usize,
    address: SocketAddr,
    tally: &'a Tally,
    stream: Option<TcpStream>,
}

/// A reply, or as much of it as came.
struct Reply {
    status: u16,
    tries: String,
    body: Option<String>,
    closes: bool,
}

impl<'a> Client<'a> {
    pub fn new(number: usize, address: SocketAddr, tally: &'a Tally) -> Self {
        Self { number, address, tally, stream: None }
    }

    pub fn run(mut self) {
        while let Some(number) = self.tally.next() {
            let request = REQUESTS[(number + self.number) % REQUESTS.len()];
            match self.ask(request, number) {
                Ok(reply) => self.judge(request, number, &reply),
                Err(error) => {
                    self.stream = None;
                    self.tally.complain(format!("request {number}, {request}: {error}"));
                }
            }
        }
        self.tally.clients.fetch_sub(1, Ordering::Relaxed);
    }

    fn ask(&mut self, request: &str, number: usize) -> std::io::Result<Reply> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                stream
            }
        };
        let body = if request.starts_with(['P', 'L']) { BODY } else { "" };
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let text = format!(
            "{request}?{number} HTTP/1.1\r\nHost: h\r\nX-Number: {number}\r\n{length}\r\n{body}"
        );
        stream.write_all(text.as_bytes())?;
        let reply = Reply::read(&mut stream)?;
        if !reply.closes {
            self.stream = Some(stream);
        }
        Ok(reply)
    }

    fn judge(&self, request: &str, number: usize, reply: &Reply) {
        let once = request.ends_with("/once");
        let tries: Vec<&str> = reply.tries.split('|').collect();
        let sent: Vec<&str> = tries.get(1).map(|all| all.split(", ").collect()).unwrap_or_default();
        let complain = |what: &str| {
            let (status, tries) = (reply.status, &reply.tries);
            self.tally.complain(format!("request {number}, {request}: {what} ({status}, {tries})"));
        };
        if sent.len() > 1 {
            self.tally.retried.fetch_add(1, Ordering::Relaxed);
            // Whoever was sent a byte is the last to be asked.
            if once && sent[..sent.len() - 1].iter().any(|bytes| !matches!(*bytes, "0" | "-")) {
                complain("asked again after a byte was sent");
            }
        }
        match (reply.status, &reply.body) {
            (200, Some(body)) if *body == format!("request {number}\n") => {}
            (200, Some(_)) => complain("another's reply"),
            (200, None) | (502, _) if self.tally.has_begun(number) => {}
            (200, None) => complain("cut off, and not by its server"),
            (502, _) if once => {}
            // Each server was killed while it had it, which takes a very slow machine.
            (502, _) if sent.len() == BACKENDS => {}
            _ => complain("lost"),
        }
    }
}

impl Reply {
    fn read(stream: &mut TcpStream) -> std::io::Result<Reply> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut buffer)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                length => bytes.extend_from_slice(&buffer[..length]),
            }
        };
        let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let length: usize =
            field("Content-Length: ").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut whole = true;
        while bytes.len() < head + length {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => {
                    whole = false;
                    break;
                }
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            }
        }
        Ok(Reply {
            status: text.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0),
            tries: field("X-Tries: ").unwrap_or_default().to_owned(),
            body: whole.then(|| String::from_utf8_lossy(&bytes[head..]).into_owned()),
            closes: !whole || field("Connection: ") == Some("close"),
        })
    }
}
