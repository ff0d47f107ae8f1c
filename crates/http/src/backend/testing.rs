//! A scripted server on a port of its own, for tests of backends.
//!
//! ```text
//! let backend = Backend::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
//! let server = proxy(&backend, "");
//! assert!(server.ask("GET / HTTP/1.0\r\n\r\n").ends_with("hi"));
//! assert_eq!(backend.asked(), "GET / HTTP/1.1\nHost: ...\n\n");
//! ```
//!
//! See [`testing::Peer`], which it is made of.

#![allow(dead_code, reason = "what one feature's tests do not ask for, another's will")]

use std::net::{TcpListener, TcpStream};

use ::testing::Peer;
pub(crate) use ::testing::PeerConnection as TestPeer;
use net::testing::{RelaySide, relay};

use crate::h1::tests::{Server, tcp_pair};
use crate::testing::transport;

/// A scripted server.
pub(crate) struct TestBackend {
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    peer: Peer,
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
    pub(crate) fn playing<R>(script: impl Fn(TestPeer) -> R + Send + Sync + 'static) -> Self {
        let peer = Peer::playing(move |connection| script(connection.over(unsecured)));
        Self { port: peer.address.port(), peer }
    }

    /// The same, on a listening socket.
    pub(crate) fn at<R>(
        listener: TcpListener,
        script: impl Fn(TestPeer) -> R + Send + Sync + 'static,
    ) -> Self {
        let peer = Peer::at(listener, move |connection| script(connection.over(unsecured)));
        Self { port: peer.address.port(), peer }
    }

    /// Answers each request with the function's result; the connection is kept if the length of the
    /// reply is known.
    pub(crate) fn answering(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::playing(move |peer| peer.answer(&answer))
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
            let mut asked = Vec::new();
            while !asked.ends_with(end) {
                asked.extend(peer.take()?);
            }
            peer.report(&asked.escape_ascii().to_string());
            peer.send_raw(&reply)
        })
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The next request, body included; its lines end with line feeds.
    pub(crate) fn asked(&self) -> String {
        self.peer.asked()
    }

    /// The number of connections that it has accepted.
    pub(crate) fn connections(&self) -> usize {
        self.peer.connections()
    }

    /// Fails if another request has arrived, or arrives shortly.
    pub(crate) fn expect_unasked(&self) {
        self.peer.expect_unasked();
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
