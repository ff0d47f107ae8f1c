//! How connections end: lingering, closed or reset; and clients that do not read.

use std::io::ErrorKind;

use super::*;
use crate::exchange::Bytes;

const LARGE: usize = 4 << 20;
/// The most writes of a client to a connection that is about to be closed.
const WRITES_MAX: usize = 1000;

const ROOMS: &str = "
    lingering_timeout 100ms;
    server {
        client_max_body_size 1k;
        location / { return 200 x; }
        location /silent { return 444; }
        location /reset { reset_timedout_connection on; return 444; }
        location /off { lingering_close off; return 200 x; }
        location /always { lingering_close always; return 200 x; }
        location /time {
            lingering_close always;
            lingering_time 200ms;
            lingering_timeout 5s;
            return 200 x;
        }
        location /large { client_max_body_size 0; send_timeout 100ms; }
        location /patient { client_max_body_size 0; }
    }";

fn server() -> Server {
    let large = |x: &mut Exchange| {
        x.reply.status = 200;
        x.reply.set_bytes(Bytes::Owned(vec![b'x'; LARGE]));
        Flow::Done
    };
    let change = move |site: &mut Site| {
        handle(site, "/large", large);
        handle(site, "/patient", large);
    };
    Server::with(ROOMS, change, |_| {})
}

impl Client {
    /// Writes until the server stops reading.
    pub(crate) fn write_until_refused(&mut self) {
        for _ in 0..WRITES_MAX {
            if !self.is_read() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server never stops reading");
    }

    pub(crate) fn is_read(&mut self) -> bool {
        let written = self.0.write_all(b"x");
        written.map_err(|error| assert_eq!(error.kind(), ErrorKind::BrokenPipe)).is_ok()
    }
}

#[test]
fn a_client_that_sends_a_large_body_receives_the_reply_and_no_reset() {
    let server = server();
    for _ in 0..10 {
        let mut client = server.connect_tcp();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n"));
        client.send(vec![b'x'; LARGE]);
        client.expect(&page("413 Request Entity Too Large"));
        client.expect_end();
    }
}

#[test]
fn lingering_ends_after_its_times() {
    let server = server();
    let closed = text("200 OK", "close", "x");
    let request = |path: &str| format!("GET {path} HTTP/1.1\nHost: a\nConnection: close\n");
    let mut client = server.connect();
    client.head(&request("/"));
    client.expect(&closed);
    client.write_until_refused();
    let mut client = server.connect();
    client.head(&request("/always"));
    client.expect(&closed);
    client.expect_end();
    server.advance(99);
    assert!(client.is_read());
    server.advance(99);
    assert!(client.is_read(), "received bytes restart lingering_timeout");
    server.advance(101);
    client.write_until_refused();
    let mut client = server.connect();
    client.head(&request("/time"));
    client.expect(&closed);
    for _ in 0..3 {
        server.advance(60);
        assert!(client.is_read());
    }
    server.advance(60);
    client.write_until_refused();
    let mut client = server.connect();
    client.send("POST /off HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\nx");
    client.expect(&closed);
    client.write_until_refused();
}

#[test]
fn status_444_closes_or_resets_without_a_reply() {
    let server = server();
    assert_eq!(server.ask("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n"), "");
    assert_eq!(server.logged(), (444, 0));
    let mut client = server.connect_tcp();
    client.head("GET /silent HTTP/1.1\nHost: a\n");
    client.expect_end();
    let mut client = server.connect_tcp();
    client.head("GET /reset HTTP/1.1\nHost: a\n");
    let error = client.0.read(&mut [0]).expect_err("a reset connection");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_client_that_does_not_read_times_out() {
    let server = server();
    let mut client = server.connect();
    client.head("GET /large HTTP/1.1\nHost: a\n");
    let (_, (status, sent)) = server.steps_until_logged(100);
    assert_eq!(status, 200);
    assert!((1..LARGE as u64).contains(&sent), "{sent}");
    assert_eq!(client.rest().len() as u64, sent - 29 + DATE.len() as u64);
}

#[test]
fn a_client_that_only_writes_still_times_out() {
    let server = server();
    let mut client = server.connect();
    client.send(format!("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n"));
    let mut written = 0;
    while server.logged.try_recv().is_err() {
        client.send_if_wanted("x");
        server.advance(20);
        written += 1;
        assert!(written < WRITES_MAX, "the server never stops reading");
    }
}

#[test]
fn a_client_that_writes_first_and_reads_later_is_served() {
    let server = server();
    let mut client = server.connect();
    let length = 2 * LARGE;
    client.send(format!("POST /patient HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
    for _ in 0..length / 4096 {
        client.send([b'y'; 4096]);
    }
    let fields = format!("Content-Length: {LARGE}\nConnection: keep-alive\n");
    client.expect(&reply("200 OK", &fields, &"x".repeat(LARGE)));
    client.head("GET / HTTP/1.1\nHost: a\n");
    client.expect(&text("200 OK", "keep-alive", "x"));
}
