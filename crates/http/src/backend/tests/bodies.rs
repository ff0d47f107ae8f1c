//! Bodies of replies: read ahead of a slow client, passed on at once, limited, cut short.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::testing::{TestBackend, TestPeer, proxy, text};
use crate::h1::tests::{Client, PATIENCE, Server};

const ASKED: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
/// More than the buffers of sockets hold.
const LARGE: usize = 24 << 20;

fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// A backend that sends a large reply of known length, and reports its end; and its number of
/// connections.
fn large() -> (TestBackend, Arc<AtomicU32>, std::sync::mpsc::Receiver<()>) {
    let (sender, sent) = channel();
    let (sender, connections) = (Mutex::new(sender), Arc::new(AtomicU32::new(0)));
    let counted = connections.clone();
    let backend = TestBackend::playing(move |mut peer| {
        counted.fetch_add(1, Ordering::Relaxed);
        while let Some(request) = peer.request() {
            let length = if request.starts_with("GET / ") { LARGE } else { 2 };
            peer.send(&format!("HTTP/1.1 200 OK\nContent-Length: {length}\n\n"));
            peer.send_raw(text(length));
            let _ = sender.lock().unwrap().send(());
        }
    });
    (backend, connections, sent)
}

/// A group that keeps connections.
fn kept(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log info; upstream u {{ server {address} max_conns=1; keepalive 4; }}
         server {{ location / {{
             proxy_pass http://u; proxy_set_header Connection ''; {lines}
         }} }}"
    ))
}

fn slow(server: &Server) -> Client {
    let mut client = server.connect_tcp();
    client.send(ASKED);
    client
}

/// Sends requests until the server, which serves one at a time, has finished the one before.
fn await_turn(server: &Server) {
    let begun = Instant::now();
    while !server.ask("GET /small HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n00") {
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn a_slow_client_does_not_hold_up_the_server() {
    let (backend, connections, sent) = large();
    let server = kept(&backend, "");
    let mut client = slow(&server);
    sent.recv_timeout(PATIENCE).unwrap();
    // Its connection is free for other requests, although the client has read nothing.
    await_turn(&server);
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert!(body(&client.rest()) == text(LARGE));
    let mut log = server.log();
    log.retain(|line| !line.starts_with("no live upstreams"));
    let said = "an upstream response is buffered to a temporary file ";
    assert!(log.len() == 1 && log[0].starts_with(said), "{log:?}");
    assert!(log[0].contains("/proxy_temp/") && log[0].contains(" while reading upstream, "));
}

#[test]
fn a_slow_client_holds_up_the_server_once_memory_and_file_are_full() {
    for lines in ["proxy_max_temp_file_size 0;", "proxy_buffering off;"] {
        let (backend, _, sent) = large();
        let server = kept(&backend, lines);
        let mut client = slow(&server);
        assert!(sent.recv_timeout(Duration::from_millis(200)).is_err(), "{lines}");
        assert!(body(&client.rest()) == text(LARGE), "{lines}");
        sent.recv_timeout(PATIENCE).unwrap();
        assert!(server.log().is_empty(), "{lines}");
    }
}

#[test]
fn the_file_has_its_limit_and_bytes_keep_their_order() {
    let (backend, _, sent) = large();
    let server = kept(&backend, "proxy_buffers 4 64k; proxy_max_temp_file_size 1m;");
    let mut client = slow(&server);
    assert!(sent.recv_timeout(Duration::from_millis(200)).is_err());
    assert!(body(&client.rest()) == text(LARGE));
}

#[test]
fn a_client_held_back_by_its_rate_does_not_hold_up_the_server() {
    let (backend, connections, sent) = large();
    let server = kept(&backend, "limit_rate_after 16m; limit_rate 100m;");
    let mut client = slow(&server);
    sent.recv_timeout(PATIENCE).unwrap();
    await_turn(&server);
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert!(body(&client.rest()) == text(LARGE));
}

#[test]
fn an_unbuffered_reply_is_passed_on_at_once() {
    let (go_on, signal) = channel::<()>();
    let signal = Mutex::new(signal);
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        let wait = || signal.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        peer.send("HTTP/1.1 200 OK\nDate: d\nServer: s\n\n");
        for piece in ["one", "two"] {
            wait();
            peer.send_raw(piece);
        }
        wait();
    });
    let lines = "proxy_buffering off; proxy_pass_header Server; proxy_pass_header Date;";
    let server = proxy(&backend, lines);
    let mut client = slow(&server);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\
                Date: d\r\nServer: s\r\n\r\n";
    client.expect_raw(head);
    for chunk in ["3\r\none\r\n", "3\r\ntwo\r\n"] {
        go_on.send(()).unwrap();
        client.expect_raw(chunk);
    }
    go_on.send(()).unwrap();
    assert_eq!(client.rest(), "0\r\n\r\n");
}

#[test]
fn limit_rate_limits_buffered_replies() {
    let backend = TestBackend::replying(&format!(
        "HTTP/1.1 200 OK\nContent-Length: 150000\n\n{}",
        text(150_000)
    ));
    let server = proxy(&backend, "proxy_limit_rate 100k;");
    let mut client = server.connect();
    client.send(ASKED);
    let reader = thread::spawn(move || client.rest());
    let (steps, _) = server.steps_until_logged(100);
    assert!((4..30).contains(&steps), "{steps}");
    assert!(body(&reader.join().unwrap()) == text(150_000));
    // The rate limits the backend's side: without buffering, there is no limit.
    let server = proxy(&backend, "proxy_limit_rate 1; proxy_buffering off;");
    assert!(body(&server.ask(ASKED)) == text(150_000));
}

#[test]
fn a_client_that_leaves_ends_the_request() {
    for lines in ["", "proxy_buffering off;"] {
        let (sender, over) = channel();
        let sender = Mutex::new(sender);
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send("HTTP/1.1 200 OK\nContent-Length: 9\n\nabc");
            peer.wait_for_end();
            let _ = sender.lock().unwrap().send(());
        });
        let server = proxy(&backend, lines);
        let mut client = slow(&server);
        backend.asked();
        if !lines.is_empty() {
            client.expect_some();
        }
        drop(client);
        over.recv_timeout(PATIENCE).unwrap();
        assert_eq!(server.logged().0, if lines.is_empty() { 499 } else { 200 });
    }
}

#[test]
fn a_request_with_ignore_client_abort_survives_its_client() {
    let ((left, gone), (sender, over)) = (channel::<()>(), channel());
    let (gone, sender) = (Mutex::new(gone), Mutex::new(sender));
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        gone.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        peer.expect_open();
        peer.send("HTTP/1.1 200 OK\nContent-Length: 3\n\nabc");
        let _ = sender.lock().unwrap().send(());
    });
    let server = proxy(&backend, "proxy_ignore_client_abort on;");
    let client = slow(&server);
    backend.asked();
    drop(client);
    left.send(()).unwrap();
    over.recv_timeout(PATIENCE).unwrap();
    assert_eq!(server.logged().0, 200);
}

#[test]
fn the_target_of_a_redirect_decides_whether_a_request_survives_its_client() {
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\nX-Accel-Redirect: /on\nContent-Length: 0\n\n");
        peer.request();
        peer.wait_for_end();
        peer.report("closed");
    });
    let address = backend.address();
    let server = Server::start(format!(
        "error_log e.log; upstream b {{ server {address}; keepalive 1; }}
         server {{ location / {{ proxy_pass http://b; proxy_ignore_client_abort on; }}
                  location /on {{ proxy_pass http://b; }} }}"
    ));
    let mut client = server.connect_tcp();
    client.head("GET / HTTP/1.1\nHost: h\n");
    assert!(backend.asked().starts_with("GET / "));
    assert!(backend.asked().starts_with("GET /on "));
    drop(client);
    assert_eq!(backend.asked(), "closed");
    assert_eq!(server.logged().0, 499);
}

#[test]
fn trailers_are_passed_on_if_enabled() {
    let backend = TestBackend::playing(|mut peer: TestPeer| {
        while peer.request().is_some() {
            peer.send("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n");
            peer.send_raw("1\r\na\r\n0\r\nX: y\r\nServer: s\r\nSecret: z\r\n\r\n");
        }
    });
    let lines = "proxy_hide_header Secret;";
    assert!(proxy(&backend, lines).ask(ASKED).ends_with("\r\n1\r\na\r\n0\r\n\r\n"));
    let lines = format!("{lines} proxy_pass_trailers on;");
    for lines in [&lines, &format!("{lines} proxy_buffering off;")] {
        let reply = proxy(&backend, lines).ask(ASKED);
        assert!(reply.ends_with("\r\n1\r\na\r\n0\r\nX: y\r\n\r\n"), "{reply}");
    }
}

#[test]
fn a_body_that_is_cut_short_has_no_end() {
    for (reply, sent) in [
        ("Content-Length: 9\n\nabc", "abc"),
        ("Transfer-Encoding: chunked\n\n3\r\nabc\r\n", "3\r\nabc\r\n"),
        ("Transfer-Encoding: chunked\n\n3\r\nabc\r\n0\r\n", "3\r\nabc\r\n"),
    ] {
        for lines in ["", "proxy_buffering off;"] {
            let backend = TestBackend::playing(move |mut peer| {
                peer.request();
                peer.send(&format!("HTTP/1.1 200 OK\n{reply}"));
            });
            let server = proxy(&backend, lines);
            // The client gets no end of the body.
            let got = server.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(body(&got), sent, "{reply}");
            assert_eq!(server.log().len(), 1, "{:?}", server.log());
        }
    }
}

#[test]
fn an_invalid_body_is_not_passed_on() {
    const HEAD: &str = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n";
    for (lines, pieces) in [
        ("", [HEAD, "x\r\n"].as_slice()),
        ("", &[&format!("{HEAD}x\r\n")]),
        ("", &[&format!("{HEAD}3\r\nabc\r\nx\r\n")]),
        ("proxy_buffering off;", &[&format!("{HEAD}x\r\n")]),
        ("proxy_buffering off;", &[&format!("{HEAD}3\r\nabc\r\nx\r\n")]),
    ] {
        let pieces: Vec<_> = pieces.iter().map(|&piece| piece.to_owned()).collect();
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            for piece in &pieces {
                peer.send(piece);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let server = proxy(&backend, lines);
        // For a client of HTTP/1.0, a head alone would be an empty reply.
        assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n"), "", "{lines}");
        assert_eq!(server.log().len(), 1, "{:?}", server.log());
        assert_eq!(server.logged().0, 200);
    }
}

#[test]
fn a_complete_chunk_of_a_buffered_reply_is_passed_on_at_once() {
    let (go_on, signal) = channel::<()>();
    let signal = Mutex::new(signal);
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        let wait = || signal.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        peer.send("HTTP/1.1 200 OK\nDate: d\nServer: s\nTransfer-Encoding: chunked\n\n");
        for piece in ["1\r\na\r\n", "2\r\nb", "c\r\n", "0\r\n\r\n"] {
            wait();
            peer.send_raw(piece);
        }
    });
    let server = proxy(&backend, "proxy_pass_header Server; proxy_pass_header Date;");
    let mut client = slow(&server);
    go_on.send(()).unwrap();
    client.expect_raw(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\
         Date: d\r\nServer: s\r\n\r\n1\r\na\r\n",
    );
    go_on.send(()).unwrap();
    client.expect_nothing();
    go_on.send(()).unwrap();
    client.expect_raw("1\r\nb\r\n1\r\nc\r\n");
    go_on.send(()).unwrap();
    assert_eq!(client.rest(), "0\r\n\r\n");
}

#[test]
fn a_body_that_ends_with_the_connection() {
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        peer.send("HTTP/1.0 200 OK\n\nabc");
    });
    let server = proxy(&backend, "");
    let reply = server.ask(ASKED);
    assert!(reply.ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "{reply}");
    let reply = server.ask("GET / HTTP/1.0\r\n\r\n");
    assert!(reply.ends_with("Connection: close\r\n\r\nabc"), "{reply}");
    assert!(server.log().is_empty());
}

#[test]
fn surplus_bytes_are_dropped_and_logged() {
    for (reply, sent, said) in [
        ("Content-Length: 1\n\nab", "a", "specified in \"Content-Length\" header"),
        ("Content-Length: 0\n\nab", "", "specified in \"Content-Length\" header"),
        ("Transfer-Encoding: chunked\n\n0\r\n\r\nx", "0\r\n\r\n", "data after final chunk"),
    ] {
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send(&format!("HTTP/1.1 200 OK\n{reply}"));
            peer.wait_for_end();
        });
        let server = kept(&backend, "");
        let got = server.ask(ASKED);
        assert_eq!(body(&got), sent, "{reply}");
        let log = server.log();
        assert!(log.len() == 1 && log[0].contains(said), "{log:?}");
        assert!(log[0].contains(" while reading upstream, "), "{log:?}");
    }
}
