//! One client: a request, its reply looked at, the next request.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use testing::{PeerConnection, field};

use super::{BACKENDS, Tally};

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
    connection: Option<PeerConnection>,
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
        Self { number, address, tally, connection: None }
    }

    pub fn run(mut self) {
        while let Some(number) = self.tally.next() {
            let request = REQUESTS[(number + self.number) % REQUESTS.len()];
            match self.ask(request, number) {
                Some(reply) => self.judge(request, number, &reply),
                None => self.tally.complain(format!("request {number}, {request}: no reply")),
            }
        }
        self.tally.clients.fetch_sub(1, Ordering::Relaxed);
    }

    fn ask(&mut self, request: &str, number: usize) -> Option<Reply> {
        let mut connection =
            self.connection.take().unwrap_or_else(|| PeerConnection::to(&self.address));
        let body = if request.starts_with(['P', 'L']) { BODY } else { "" };
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let text = format!(
            "{request}?{number} HTTP/1.1\r\nHost: h\r\nX-Number: {number}\r\n{length}\r\n{body}"
        );
        connection.send_raw(text)?;
        let reply = Reply::read(&mut connection)?;
        if !reply.closes {
            self.connection = Some(connection);
        }
        Some(reply)
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
    fn read(connection: &mut PeerConnection) -> Option<Reply> {
        let head = String::from_utf8(connection.until(b"\r\n\r\n")?).ok()?;
        let length = field(&head, "Content-Length").and_then(|length| length.parse().ok());
        let body = connection.exactly(length.unwrap_or(0));
        Some(Reply {
            status: head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0),
            tries: field(&head, "X-Tries").unwrap_or_default().to_owned(),
            closes: body.is_none() || field(&head, "Connection") == Some("close"),
            body: body.map(|body| String::from_utf8_lossy(&body).into_owned()),
        })
    }
}
