//! Tunnels through the real driver, to scripted backends.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Waker};

use super::{DirectionState, Way};

use crate::backend::testing::{TestBackend, TestPeer, proxy};
use crate::exchange::{Exchange, TunnelEnd};
use crate::h1::tests::{Client, PATIENCE, Server};
use crate::site::Site;

/// The settings that pass the client's upgrade on.
const PASSED: &str = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";
const ASKED: &str = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: foo\r\nConnection: upgrade\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching\nUpgrade: foo\nConnection: upgrade\n\n";

/// A backend that switches protocols and sends text at once; then a script.
fn switching(script: impl Fn(&mut TestPeer) + Send + Sync + 'static) -> TestBackend {
    TestBackend::playing(move |mut peer| {
        peer.request().unwrap();
        peer.send(&format!("{SWITCHED}hello"));
        script(&mut peer);
    })
}

fn echo(peer: &mut TestPeer) {
    while let Some(bytes) = peer.take() {
        peer.send_raw(bytes);
    }
}

fn switch(server: &Server, more: &str) -> Client {
    let mut client = server.connect_tcp();
    client.send(format!("{ASKED}{more}"));
    client.expect(&crate::h1::tests::reply(
        "101 Switching",
        "Connection: upgrade\nUpgrade: foo\n",
        "hello",
    ));
    client
}

#[test]
fn bytes_are_copied_both_ways_and_early_ones_first() {
    let backend = switching(echo);
    let server = proxy(&backend, PASSED);
    let mut client = switch(&server, "early");
    client.expect("early");
    let large = "x".repeat(1 << 20);
    std::thread::scope(|scope| {
        let mut sender = client.twin();
        scope.spawn(move || sender.send(large));
        client.expect(&"x".repeat(1 << 20));
    });
    client.end();
    client.expect_end();
    let (status, sent) = server.logged();
    assert_eq!(status, 101);
    assert!(sent > (1 << 20) + 10, "{sent}");
    assert!(backend.asked().contains("\nUpgrade: foo\nConnection: upgrade\n"));
}

#[test]
fn the_end_of_the_server_ends_the_tunnel_after_delivery() {
    let backend = switching(|peer| _ = peer.send_raw("x".repeat(1 << 20)));
    let server = proxy(&backend, PASSED);
    let mut client = switch(&server, "");
    assert_eq!(client.rest(), "x".repeat(1 << 20));
    assert_eq!(server.logged().0, 101);
}

#[test]
fn bytes_are_counted() {
    let backend = switching(echo);
    let (sender, counted) = channel();
    let http =
        format!("server {{ location / {{ proxy_pass http://{}; {PASSED} }} }}", backend.address());
    let server = Server::with(http, |site| count(site, sender), |_| {});
    let mut client = switch(&server, "");
    client.send("12345678");
    client.expect("12345678");
    client.end();
    client.expect_end();
    let request = backend.asked().replace('\n', "\r\n").len() as u64;
    let reply = format!("{SWITCHED}hello").replace('\n', "\r\n").len() as u64;
    let counted = counted.recv_timeout(PATIENCE).unwrap();
    assert_eq!(counted, [13, reply + 8, request + 8, 0]);
}

/// Reports the byte counts at the end of an exchange: body bytes to the client, bytes from the
/// server, to it, and body bytes from it.
fn count(site: &mut Site, counts: Sender<[u64; 4]>) {
    for location in &mut site.locations {
        let counts = Mutex::new(counts.clone());
        let logger = move |x: &mut Exchange| {
            let asked = x.backends.last().unwrap();
            let _ = counts.lock().unwrap().send([
                x.reply.body_bytes_sent(),
                asked.bytes_received.get(),
                asked.bytes_sent.get(),
                asked.response_length.get(),
            ]);
        };
        let mut loggers: Vec<_> = std::mem::take(&mut location.loggers).into();
        loggers.push(Box::new(logger));
        location.loggers = loggers.into();
    }
}

#[test]
fn a_silent_server_times_out() {
    let backend = switching(|peer| peer.wait_for_end());
    let server = proxy(&backend, &format!("{PASSED} proxy_read_timeout 100ms;"));
    let mut client = switch(&server, "");
    server.advance(100);
    client.expect_end();
    server.logged();
    let log = server.log();
    let expected = "upstream timed out (110: Connection timed out) while proxying upgraded \
                    connection, client: ";
    assert!(log.len() == 1 && log[0].starts_with(expected), "{log:?}");
}

#[test]
fn the_timeout_starts_at_the_last_byte() {
    let backend = switching(echo);
    let server = proxy(&backend, &format!("{PASSED} proxy_read_timeout 1s;"));
    let mut client = switch(&server, "");
    client.send("on");
    client.expect("on");
    server.advance(999);
    client.expect_nothing();
    server.advance(1);
    client.expect_end();
}

#[test]
fn a_client_that_takes_nothing_times_out() {
    let backend = switching(|peer| {
        peer.send_raw("x".repeat(32 << 20));
        peer.wait_for_end();
    });
    let server = proxy(&backend, &format!("{PASSED} send_timeout 100ms;"));
    let _client = switch(&server, "");
    server.steps_until_logged(100);
    let log = server.log();
    let expected = "client timed out (110: Connection timed out) while proxying upgraded";
    assert!(log.len() == 1 && log[0].starts_with(expected), "{log:?}");
}

#[test]
fn an_upgrade_without_a_request_is_no_tunnel() {
    let backend = switching(|_| {});
    let server = proxy(&backend, "proxy_set_header Upgrade foo;");
    let reply = server.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
    assert!(server.log()[0].starts_with("upstream sent unexpected status 101 "));
}

#[test]
fn a_leaving_worker_waits_for_tunnels_until_the_timeout() {
    let backend = switching(echo);
    let server = proxy(&backend, PASSED);
    let mut client = switch(&server, "");
    server.drain();
    for _ in 0..2 {
        client.send("on");
        client.expect("on");
    }
    server.cut();
    client.expect_end();
    // The exchange is logged even if it was cut off.
    assert_eq!(server.logged().0, 101);
}

/// An end that gives pieces, and takes this many bytes.
struct Scripted {
    gives: Vec<Poll<&'static [u8]>>,
    takes: usize,
    taken: Vec<u8>,
}

impl TunnelEnd for Scripted {
    fn poll_read(
        &mut self,
        _: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<std::io::Result<usize>> {
        let Poll::Ready(bytes) = self.gives.remove(0) else { return Poll::Pending };
        buffer.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let count = bytes.len().min(self.takes);
        self.takes -= count;
        self.taken.extend_from_slice(&bytes[..count]);
        if count > 0 { Poll::Ready(Ok(count)) } else { Poll::Pending }
    }
}

#[test]
fn a_direction_holds_memory_only_while_bytes_wait() {
    let gives = vec![Poll::Ready(&b"abc"[..]), Poll::Ready(b"de"), Poll::Pending, Poll::Ready(b"")];
    let mut from = Scripted { gives, takes: 0, taken: Vec::new() };
    let mut to = Scripted { gives: Vec::new(), takes: 4, taken: Vec::new() };
    let mut way = Way::default();
    let mut cx = Context::from_waker(Waker::noop());
    let mut copy =
        |way: &mut Way, to: &mut Scripted| way.copy(&mut cx, &mut from, to).ok().unwrap();
    assert_eq!(copy(&mut way, &mut to), (DirectionState::WaitsForRoom, true));
    assert_eq!((&to.taken[..], way.buffer.is_empty()), (&b"abcd"[..], false));
    assert_eq!(copy(&mut way, &mut to), (DirectionState::WaitsForRoom, false));
    to.takes = 9;
    assert_eq!(copy(&mut way, &mut to), (DirectionState::WaitsForMore, true));
    assert_eq!((&to.taken[..], way.buffer.capacity()), (&b"abcde"[..], 0));
    assert_eq!(copy(&mut way, &mut to), (DirectionState::Ended, true));
}
