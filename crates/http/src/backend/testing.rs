//! What tests of backends stand on: a server whose replies are written down, on a port of its own.
//!
//! ```text
//! let backend = Backend::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
//! let server = proxy(&backend, "");
//! assert!(server.ask("GET / HTTP/1.0\r\n\r\n").ends_with("hi"));
//! assert_eq!(backend.asked(), "GET / HTTP/1.1\nHost: ...\n\n");
//! ```
//!
//! Line feeds in what is written down become CR LF in heads, and are what tests compare with. Every
//! connection has a thread; what comes is told to the test in its order.

#![allow(dead_code, reason = "what one feature's tests do not ask for, another's will")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use net::testing::{RelaySide, relay};

use crate::h1::tests::{PATIENCE, Server, tcp_pair};
use crate::testing::transport;

/// A server that does what a test says.
pub(crate) struct TestBackend {
    /// Where it listens on 127.0.0.1.
    pub(crate) port: u16,
    asked: Receiver<String>,
}

/// One connection, as the script of a backend sees it.
pub(crate) struct TestPeer {
    stream: TcpStream,
    input: Vec<u8>,
    asked: Sender<String>,
}

/// The connection as a script speaks on it: what came on it is relayed, where the suite runs over
/// sessions.
fn unsecured(stream: TcpStream) -> TcpStream {
    if transport(RelaySide::Server).is_none() {
        return stream;
    }
    stream.set_nonblocking(true).unwrap();
    let [near, far] = tcp_pair();
    relay(far, stream.into(), RelaySide::Server);
    let near = TcpStream::from(near);
    near.set_nonblocking(false).unwrap();
    near
}

impl TestBackend {
    /// Plays a script with every connection; the connection is closed when the script ends.
    pub(crate) fn playing(script: impl Fn(TestPeer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, asked) = channel();
        let script = Arc::new(script);
        // Both kinds of thread go with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, asked) = (script.clone(), sender.clone());
                let stream = unsecured(stream);
                thread::spawn(move || script(TestPeer { stream, input: Vec::new(), asked }));
            }
        });
        Self { port, asked }
    }

    /// Answers each request with what the function says; the connection is kept if the length of
    /// that is known.
    pub(crate) fn answering(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::playing(move |mut peer| {
            while let Some(request) = peer.request() {
                let reply = answer(&request);
                peer.send(&reply);
                if !has_length(&reply) {
                    return;
                }
            }
        })
    }

    /// Answers every request alike.
    pub(crate) fn replying(reply: &str) -> Self {
        let reply = reply.to_owned();
        Self::answering(move |_| reply.clone())
    }

    /// Answers a request that ends with these bytes with others, and closes the connection. The
    /// request is told escaped.
    pub(crate) fn of_bytes(end: &'static [u8], reply: impl Into<Vec<u8>>) -> Self {
        let reply = reply.into();
        Self::playing(move |mut peer| {
            while !peer.input.ends_with(end) {
                if peer.read().is_none() {
                    return;
                }
            }
            let asked = std::mem::take(&mut peer.input).escape_ascii().to_string();
            let _ = peer.asked.send(asked);
            peer.send_raw(&reply);
        })
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The next request that came, body included; its lines end with line feeds.
    pub(crate) fn asked(&self) -> String {
        self.asked.recv_timeout(PATIENCE).expect("a request")
    }

    /// Fails if another request has come, or comes within a moment.
    pub(crate) fn expect_unasked(&self) {
        let asked = self.asked.recv_timeout(Duration::from_millis(50));
        assert_eq!(asked, Err(RecvTimeoutError::Timeout));
    }
}

/// So many bytes, of which no two parts are alike.
pub(crate) fn text(length: usize) -> String {
    let mut text = String::with_capacity(length + 1024);
    while text.len() < length {
        text += &format!("{:0>1000}\n", text.len());
    }
    text.truncate(length);
    text
}

/// A port without a listener. It is privileged, so the system never gives it to another test.
pub(crate) fn closed_port() -> u16 {
    1
}

/// A server that passes everything on, with more lines in its location. It logs to `e.log`.
pub(crate) fn proxy(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log info; server {{ location / {{ proxy_pass http://{address}; {lines} }} }}"
    ))
}

/// A backend that sends a field with the value that its request has in `X-Value`.
pub(crate) fn echoing(name: &'static str) -> TestBackend {
    TestBackend::answering(move |request| {
        let value = request.lines().find_map(|line| line.strip_prefix("X-Value: ")).unwrap();
        format!("HTTP/1.1 200 OK\n{name}: {value}\nContent-Length: 0\n\n")
    })
}

/// Asks such a backend through a server: what comes back of the field.
pub(crate) fn echoed(server: &Server, target: &str, name: &str, value: &str) -> String {
    let head = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n");
    let reply = server.ask(&format!("{head}X-Value: {value}\r\n\r\n"));
    values(&reply, name).join("|")
}

/// The values of a field.
pub(crate) fn values<'r>(reply: &'r str, name: &str) -> Vec<&'r str> {
    let head = reply.split("\r\n\r\n").next().unwrap_or_default();
    let fields = head.split("\r\n").filter_map(|line| line.split_once(": "));
    fields.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

impl TestPeer {
    /// The next request, its body as it was framed; `None` once the other side has closed.
    pub(crate) fn request(&mut self) -> Option<String> {
        let head = loop {
            if let Some(at) = find(&self.input, b"\r\n\r\n") {
                break at + 4;
            }
            self.read()?;
        };
        let text = String::from_utf8_lossy(&self.input[..head]).to_ascii_lowercase();
        let end = match text.split_once("content-length: ") {
            Some((_, rest)) => head + rest.split("\r\n").next()?.parse::<usize>().ok()?,
            None if text.contains("transfer-encoding: chunked") => loop {
                if let Some(at) = find(&self.input[head - 2..], b"\r\n0\r\n\r\n") {
                    break head - 2 + at + 7;
                }
                self.read()?;
            },
            None => head,
        };
        while self.input.len() < end {
            self.read()?;
        }
        let rest = self.input.split_off(end);
        let request = std::mem::replace(&mut self.input, rest);
        let request = String::from_utf8_lossy(&request).replace("\r\n", "\n");
        let _ = self.asked.send(request.clone());
        Some(request)
    }

    /// Tells the test something, as if it had been asked for it.
    pub(crate) fn tell(&self, what: &str) {
        let _ = self.asked.send(what.to_owned());
    }

    /// What has come and was not asked for yet, at least one byte; `None` at the end.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        if self.input.is_empty() {
            self.read()?;
        }
        Some(std::mem::take(&mut self.input))
    }

    /// Reads what comes next; `None` at the end.
    pub(crate) fn read(&mut self) -> Option<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(count @ 1..) => {
                self.input.extend_from_slice(&buffer[..count]);
                Some(())
            }
            _ => None,
        }
    }

    /// Sends a reply: line feeds up to the first empty line become CR LF.
    pub(crate) fn send(&mut self, reply: &str) {
        let (head, body) = reply.split_once("\n\n").unwrap_or((reply, ""));
        let head = head.replace('\n', "\r\n");
        let end = if reply.contains("\n\n") { "\r\n\r\n" } else { "" };
        self.send_raw(format!("{head}{end}{body}"));
    }

    /// Sends bytes as they are. That the other side is gone is for its own log.
    pub(crate) fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Says that nothing more will be sent.
    pub(crate) fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Fails if the other side closes within a moment.
    pub(crate) fn expect_open(&mut self) {
        self.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let read = self.stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(std::io::ErrorKind::WouldBlock));
        self.stream.set_read_timeout(None).unwrap();
    }

    /// Waits until the other side closes.
    pub(crate) fn wait_for_end(&mut self) {
        while self.read().is_some() {}
    }
}

fn has_length(reply: &str) -> bool {
    let head = reply.split("\n\n").next().unwrap_or_default().to_ascii_lowercase();
    head.contains("\ncontent-length:") || head.contains("\ntransfer-encoding:")
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, what)
}

#[test]
fn a_request_through_and_back() {
    let backend = TestBackend::replying("HTTP/1.1 201 Made\nX: y\nContent-Length: 2\n\nhi");
    let server = proxy(&backend, "");
    let host = backend.address();
    for _ in 0..2 {
        let request =
            "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        let reply = server.ask(request);
        assert!(reply.starts_with("HTTP/1.1 201 Made\r\n"), "{reply}");
        assert!(reply.ends_with("\r\nX: y\r\n\r\nhi"), "{reply}");
        let asked = format!("POST /a HTTP/1.1\nHost: {host}\nContent-Length: 3\n\nabc");
        assert_eq!(backend.asked(), asked);
    }
    backend.expect_unasked();
}
