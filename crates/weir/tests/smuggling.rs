//! Ambiguous requests: one in is at most one out, and nothing comes out that a second reader could
//! read in another way.
//!
//! The backend's reader (`smuggling/backend.rs`) is its own, and strict; all cases share the kept
//! connections to it, so that what one leaves behind would be the next one's beginning.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "smuggling/backend.rs"]
mod backend;
use std::io::{Read, Write};
use std::time::Duration;

use backend::{Came, Received};
use testing::Server;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It is answered with this status, and the backend gets none.
    Refused(u16),
    /// The backend gets it, and nothing else.
    One,
}

/// What must not come out: 43 bytes.
const SMUGGLED: &str = r"GET /smuggled HTTP/1.1\r\nHost: smuggled1\r\n\r\n";

/// How long the client waits for more than its reply.
const MORE: Duration = Duration::from_millis(20);

const LOCATIONS: [&str; 3] = ["/buffered/", "/streamed/", "/replaced/"];

fn start(backend: &str) -> Server {
    let http = "upstream u { server BACKEND; keepalive 4; }
         proxy_set_header X-Mine 1;
         server {
             listen ADDRESS;
             client_body_timeout 1s;
             location /buffered/ { proxy_pass http://u; }
             location /streamed/ { proxy_request_buffering off; proxy_pass http://u; }
             location /replaced/ { proxy_pass http://u/other/; }
         }
         server { listen ADDRESS; server_name other; return 403; }";
    Server::start("", &http.replace("BACKEND", backend))
}

/// The cases, and how they are written.
const CASES: &str = include_str!("smuggling/cases.txt");

/// The smallest number of cases in the file.
const CASES_MIN: usize = 60;

#[test]
fn one_request_in_is_at_most_one_out() {
    let (address, received) = backend::start();
    let server = start(&address.to_string());
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut played, mut wrong) = (0, Vec::new());
    for line in lines {
        let (fate, case) = line.split_once(' ').unwrap();
        let fate = if fate == "one" { Fate::One } else { Fate::Refused(fate.parse().unwrap()) };
        for location in LOCATIONS {
            let bytes = unescape(&case.replace('@', location).replace('#', SMUGGLED));
            if let Err(why) = play(&server, &received, &bytes, fate) {
                wrong.push(format!("{location} {line}\n    {why}"));
            }
        }
        played += 1;
    }
    assert!(played >= CASES_MIN);
    assert!(wrong.is_empty(), "{} of {played}:\n{}", wrong.len(), wrong.join("\n"));
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [byte, tail @ ..] = rest {
        let (byte, tail) = match (byte, tail) {
            (b'\\', [b'r', tail @ ..]) => (b'\r', tail),
            (b'\\', [b'n', tail @ ..]) => (b'\n', tail),
            (b'\\', [b't', tail @ ..]) => (b'\t', tail),
            (b'\\', [b'0', tail @ ..]) => (0, tail),
            (b'\\', [b'x', high, low, tail @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap();
                (u8::from_str_radix(digits, 16).unwrap(), tail)
            }
            _ => (*byte, tail),
        };
        out.push(byte);
        rest = tail;
    }
    out
}

fn play(server: &Server, received: &Received, bytes: &[u8], fate: Fate) -> Result<(), String> {
    received.lock().clear();
    let reply = ask(server, bytes);
    let replies = reply.matches("HTTP/1.1 ").count() - reply.matches("HTTP/1.1 100 ").count();
    let status = reply.rsplit("HTTP/1.1 ").nth(replies.saturating_sub(1)).unwrap_or_default();
    let status: u16 = status.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
    let came = received.lock();
    let out = came.len();
    if let Some(Came::Malformed(why, text)) =
        came.iter().find(|came| matches!(came, Came::Malformed(..)))
    {
        return Err(format!("the backend got {why}: {}", text.escape_debug()));
    }
    let says_hello = bytes.windows(5).any(|window| window == b"hello");
    for one in came.iter() {
        let Came::Request { line, body } = one else { continue };
        if line.starts_with("GET /smuggled") || says_hello != (body == b"hello") {
            return Err(format!("the backend got {one:?}"));
        }
    }
    match fate {
        Fate::One if (status, replies, out) == (200, 1, 1) => Ok(()),
        // The first reply says so, and it is the last.
        Fate::Refused(code) if (status, replies, out) == (code, 1, 0) => Ok(()),
        _ => Err(format!("{fate:?}, but {replies} replies, status {status}, {out} out: {came:?}")),
    }
}

/// All that comes back until the connection ends or stays silent.
fn ask(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.connect();
    let mut reply = Vec::new();
    // Who refuses may close before all is written.
    let _ = stream.write_all(bytes);
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        reply.extend_from_slice(&buffer[..length]);
        if !reply.starts_with(b"HTTP/1.1 100") || reply.len() > 40 {
            stream.set_read_timeout(Some(MORE)).unwrap();
        }
    }
    String::from_utf8_lossy(&reply).into_owned()
}
