//! A scripted server on a port of its own, for tests of backends.
//!
//! ```text
//! let backend = Backend::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
//! let server = proxy(&backend, "");
//! assert!(server.ask("GET / HTTP/1.0\r\n\r\n").ends_with("hi"));
//! assert_eq!(backend.asked(), "GET / HTTP/1.1\nHost: ...\n\n");
//! ```
//!
//! Line feeds of scripts become CR LF in heads; requests are reported with line feeds. Every
//! connection has a thread; requests are reported to the test in their order.

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

/// A scripted server.
pub(crate) struct TestBackend {
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    asked: Receiver<String>,
}

/// One connection, as a script uses it.
pub(crate) struct TestPeer {
    stream: TcpStream,
    input: Vec<u8>,
    asked: Sender<String>,
}

/// The connection of a script. It is a relay if the tests run over secure sessions.
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
    /// Runs a script for every connection; the connection is closed when the script ends.
    pub(crate) fn playing(script: impl Fn(TestPeer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, asked) = channel();
        let script = Arc::new(script);
        // Both kinds of thread end with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, asked) = (script.clone(), sender.clone());
                let stream = unsecured(stream);
                thread::spawn(move || script(TestPeer { stream, input: Vec::new(), asked }));
            }
        });
        Self { port, asked }
    }

    /// Answers each request with the function's result; the connection is kept if the length of the
    /// reply is known.
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

    /// Answers a request that ends with these bytes with other bytes, and closes the connection.
    /// The request is reported with escapes.
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

    /// The next request, body included; its lines end with line feeds.
    pub(crate) fn asked(&self) -> String {
        self.asked.recv_timeout(PATIENCE).expect("a request")
    }

    /// Fails if another request has arrived, or arrives shortly.
    pub(crate) fn expect_unasked(&self) {
        let asked = self.asked.recv_timeout(Duration::from_millis(50));
        assert_eq!(asked, Err(RecvTimeoutError::Timeout));
    }
}

/// This number of bytes, no two parts of which are alike.
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

/// A server that passes all requests on, with more lines in its location. It logs to `e.log`.
pub(crate) fn proxy(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log info; server {{ location / {{ proxy_pass http://{address}; {lines} }} }}"
    ))
}

/// A backend that replies with a field that has the value of the request's `X-Value`.
pub(crate) fn echoing(name: &'static str) -> TestBackend {
    TestBackend::answering(move |request| {
        let value = request.lines().find_map(|line| line.strip_prefix("X-Value: ")).unwrap();
        format!("HTTP/1.1 200 OK\n{name}: {value}\nContent-Length: 0\n\n")
    })
}

/// Sends requests to such a backend through a server, and returns the field's values.
pub(crate) fn echoed(server: &Server, target: &str, name: &str, value: &str) -> String {
    let head = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n");
    let reply = server.ask(&format!("{head}X-Value: {value}\r\n\r\n"));
    values(&reply, name).join("|")
}

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

    /// Reports text to the test, like a request.
    pub(crate) fn report(&self, what: &str) {
        let _ = self.asked.send(what.to_owned());
    }

    /// The bytes that were not read yet, at least one; `None` at the end.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        if self.input.is_empty() {
            self.read()?;
        }
        Some(std::mem::take(&mut self.input))
    }

    /// Reads the next bytes; `None` at the end.
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

    /// Sends bytes unchanged. Ignores a closed connection, which the other side logs.
    pub(crate) fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    pub(crate) fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Fails if the other side closes shortly.
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
