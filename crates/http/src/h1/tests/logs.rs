//! Messages of the driver in the error log, in nginx's words.

use super::*;
use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Chunk};
use net::LentFuture;

const SITE: &str = "
    error_log e.log info;
    server {
        server_name log.example;
        client_header_timeout 100ms;
        client_max_body_size 5;
        location / { return 200 x; }
        location /read { }
        location /broken { }
    }";

/// A body whose source fails.
struct Broken;

impl BodyStream for Broken {
    fn poll_chunk(
        &mut self,
        _: &mut std::task::Context<'_>,
        _: &mut dyn BodyLog,
    ) -> std::task::Poll<Result<Option<Chunk>, BodyError>> {
        std::task::Poll::Ready(Err(BodyError::Io(std::io::Error::from_raw_os_error(5))))
    }
}

fn server() -> Server {
    Server::with(
        SITE,
        |site| {
            handle(site, "/read", |_| {
                wait(|x| {
                    LentFuture::new(async {
                        x.read_body().await.err().unwrap_or(Flow::Status(204))
                    })
                })
            });
            handle(site, "/broken", |x| {
                x.reply.status = 200;
                x.reply.body = Body::Stream(Box::new(Broken));
                Flow::Done
            });
        },
        |_| {},
    )
}

const POST: &str = "POST /read HTTP/1.1\r\nHost: a\r\n";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";

/// Sends a request, closes, and fails unless the log contains exactly this message and context.
fn check(request: &str, message: &str, line: &str) {
    let server = server();
    let mut client = server.connect();
    client.send(request);
    client.end();
    client.rest();
    server.logged();
    let context = format!("client: unix:, server: log.example, request: \"{line}\"");
    let host = if request.contains("Host: a") { ", host: \"a\"" } else { "" };
    assert_eq!(server.log(), [format!("{message}, {context}{host}")], "{request:?}");
}

#[test]
fn invalid_heads_are_logged() {
    let in_line = "while reading client request line";
    let in_fields = "while reading client request headers";
    check("get\r\n", &format!("client sent invalid method {in_line}"), "get");
    let line = "GET /%00 HTTP/1.0";
    check(&format!("{line}\r\n"), &format!("client sent invalid request {in_line}"), line);
    let line = "GET / HTTP/1.1";
    let no_host = "client sent HTTP/1.1 request without \"Host\" header";
    check(&format!("{line}\r\n\r\n"), &format!("{no_host} {in_fields}"), line);
    let closed = format!("client prematurely closed connection {in_fields}");
    check(&format!("{line}\r\nHos"), &closed, line);
}

#[test]
fn invalid_bodies_are_logged() {
    let line = "POST /read HTTP/1.1";
    let table = [
        ("Content-Length: 6\r\n\r\n", "client intended to send too large body: 6 bytes"),
        ("Content-Length: 5\r\n\r\nabc", "client prematurely closed connection"),
    ];
    for (rest, message) in table {
        check(&format!("{POST}{rest}"), message, line);
    }
    let table = [
        ("3\r\nabc\r\n3\r\n", "client intended to send too large chunked body: 3+3 bytes"),
        ("x", "client sent invalid chunked body"),
    ];
    for (rest, message) in table {
        check(&format!("{POST}{CHUNKED}{rest}"), message, line);
    }
    let failed = "reading the reply's body failed (5: Input/output error)";
    check("GET /broken HTTP/1.0\r\n\r\n", failed, "GET /broken HTTP/1.0");
}

#[test]
fn ends_of_connections_are_logged() {
    let waiting = "while waiting for request, client: unix:, server: 0.0.0.0:";
    let timed_out = "client timed out (110: Connection timed out)";
    let fresh = server();
    let mut client = fresh.connect();
    client.end();
    client.expect_end();
    fresh.check_start(&format!("client closed connection {waiting}"));
    let silent = server();
    let mut client = silent.connect();
    silent.advance(100);
    client.expect_end();
    silent.check_start(&format!("{timed_out} {waiting}"));
    let kept = server();
    let mut client = kept.connect();
    client.head("GET / HTTP/1.1\nHost: a\n");
    client.expect(&text("200 OK", "keep-alive", "x"));
    client.end();
    client.expect_end();
    kept.check_start("client unix: closed keepalive connection");
    let slow = server();
    let mut client = slow.connect();
    client.send("GET / HTTP/1.1\r\n");
    slow.advance(100);
    client.expect_end();
    slow.check_start(&format!("{timed_out} while reading client request headers, client: unix:"));
}

impl Server {
    fn check_start(&self, start: &str) {
        let log = self.log();
        assert!(log.len() == 1 && log[0].starts_with(start), "{log:?} instead of {start}");
    }
}
