//! Bodies of requests: from memory, from files, as they arrive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};

use crate::backend::testing::{TestBackend, TestPeer, proxy, text};
use crate::h1::tests::{PATIENCE, Server};

/// More than the buffers of sockets hold.
const LARGE: usize = 24 << 20;

fn put(length: usize) -> String {
    format!("PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
}

#[test]
fn a_large_body_is_sent_from_a_file_or_streamed() {
    for lines in ["client_max_body_size 0;", "client_max_body_size 0; proxy_request_buffering off;"]
    {
        let backend = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
        let server = proxy(&backend, lines);
        let mut client = server.connect_tcp();
        client.send(put(LARGE));
        client.send(text(LARGE));
        assert!(client.rest().ends_with("\r\n\r\nhi"));
        let asked = backend.asked();
        assert!(asked.split_once("\n\n").unwrap().1 == text(LARGE), "{lines}");
    }
}

#[test]
fn an_early_reply_is_passed_on() {
    let refusal = "HTTP/1.1 413 Too Much\nContent-Length: 2\nConnection: close\n\nno";
    for lines in ["", "proxy_request_buffering off;"] {
        let backend = TestBackend::playing(move |mut peer| {
            peer.read();
            peer.send(refusal);
        });
        let server = proxy(&backend, &format!("client_max_body_size 0; {lines}"));
        let mut client = server.connect_tcp();
        let mut sender = client.twin();
        client.send(put(LARGE));
        let writer = std::thread::spawn(move || sender.send_if_wanted(text(LARGE)));
        let reply = client.rest();
        assert!(reply.starts_with("HTTP/1.1 413 Too Much\r\n"), "{lines} {reply}");
        assert!(reply.ends_with("\r\n\r\nno"), "{lines} {reply}");
        drop(client);
        writer.join().unwrap();
    }
}

#[test]
fn a_server_that_reads_nothing_times_out() {
    for lines in ["", "proxy_request_buffering off;", "proxy_buffering off;"] {
        let (over, test_over) = channel::<()>();
        let test_over = Mutex::new(test_over);
        let backend = TestBackend::playing(move |_peer| {
            let _ = test_over.lock().unwrap().recv_timeout(PATIENCE);
        });
        let lines = format!("client_max_body_size 0; proxy_send_timeout 200ms; {lines}");
        let server = proxy(&backend, &lines);
        server.start_clock();
        let mut client = server.connect_tcp();
        let mut sender = client.twin();
        client.send(put(LARGE));
        let writer = std::thread::spawn(move || sender.send_if_wanted(text(LARGE)));
        let reply = client.rest();
        assert!(reply.starts_with("HTTP/1.1 504 Gateway Time-out\r\n"), "{lines} {reply}");
        let said =
            "upstream timed out (110: Connection timed out) while sending request to upstream";
        assert!(server.log().iter().any(|line| line.starts_with(said)), "{:?}", server.log());
        drop((over, client));
        writer.join().unwrap();
    }
}

#[test]
fn pieces_of_a_body_are_passed_on_at_once() {
    let (sender, pieces) = channel();
    let sender = Mutex::new(sender);
    let backend = TestBackend::playing(move |mut peer: TestPeer| {
        while let Some(piece) = peer.take() {
            let text = String::from_utf8(piece).unwrap();
            let is_last = text.ends_with("\r\n0\r\n\r\n") || text.ends_with("END");
            let _ = sender.lock().unwrap().send(text);
            if is_last {
                peer.send("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
            }
        }
    });
    let server = proxy(&backend, "proxy_request_buffering off;");
    let next = || pieces.recv_timeout(PATIENCE).unwrap();
    let mut client = server.connect();
    let head = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n";
    client.send(format!("{head}Expect: 100-continue\r\n\r\n"));
    client.expect("HTTP/1.1 100 Continue\r\n\r\n");
    assert!(next().ends_with("Transfer-Encoding: chunked\r\n\r\n"));
    client.send("3;x\r\none\r\n1\r\n!\r\n");
    assert_eq!(next(), "4\r\none!\r\n");
    client.send("3\r\ntwo\r\n0\r\nA: b\r\n\r\n");
    assert_eq!(next(), "3\r\ntwo\r\n0\r\n\r\n");
    client.expect_reply_ending("hi");
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\none");
    assert!(next().ends_with("Content-Length: 6\r\n\r\none"));
    client.send("END");
    assert_eq!(next(), "END");
    client.expect_reply_ending("hi");
}

#[test]
fn an_incomplete_body_ends_the_request() {
    let (sender, over) = channel();
    let sender = Mutex::new(sender);
    let backend = TestBackend::playing(move |mut peer| {
        peer.read();
        let _ = sender.lock().unwrap().send(());
        peer.wait_for_end();
        let _ = sender.lock().unwrap().send(());
    });
    let server = proxy(&backend, "proxy_request_buffering off;");
    let mut client = server.connect();
    client.send(format!("{}abc", put(9)));
    over.recv_timeout(PATIENCE).unwrap();
    server.advance(1);
    client.end();
    client.expect_end();
    over.recv_timeout(PATIENCE).unwrap();
    assert_eq!(server.logged(), (400, 0));
    let log = server.log();
    let said = "client prematurely closed connection while sending request to upstream, ";
    assert!(log.len() == 1 && log[0].starts_with(said), "{log:?}");
}

#[test]
fn a_body_that_has_already_arrived_is_kept() {
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
    let server = proxy(&backend, "proxy_request_buffering off; add_header X $request_body;");
    let reply = server.ask(&format!("{}abc", put(3)));
    assert!(reply.contains("\r\nX: abc\r\n"), "{reply}");
}

#[test]
fn a_streamed_body_has_no_file() {
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
    let lines = "proxy_request_buffering off; add_header X [$request_body$request_body_file];";
    // A body that has arrived completely and fits into memory is kept there.
    for (size, kept) in
        [("client_body_buffer_size 2;", ""), ("client_body_in_file_only clean;", "abcabc")]
    {
        let server = proxy(&backend, &format!("{lines} {size}"));
        let reply = server.ask(&format!("{}abcabc", put(6)));
        assert!(reply.contains(&format!("\r\nX: [{kept}]\r\n")), "{reply}");
    }
}

#[test]
fn locations_with_local_keepalive_share_no_connections() {
    let count = AtomicUsize::new(0);
    let backend = TestBackend::playing(move |mut peer| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        while peer.request().is_some() {
            peer.send(&format!("HTTP/1.1 200 OK\nContent-Length: 2\n\n{number}."));
        }
    });
    let address = backend.address();
    let server = Server::start(format!(
        "upstream own {{ server {address}; keepalive 8 local; }}
         upstream shared {{ server {address}; keepalive 8; }}
         upstream unsaid {{ server {address}; }}
         server {{ location /a/ {{ proxy_pass http://$arg_u; }}
             location /b/ {{ proxy_pass http://$arg_u; }}
             location /a/c/ {{ proxy_pass http://$arg_u; }} }}"
    ));
    let numbers = |group: &str| {
        ["/a/", "/a/", "/b/", "/a/c/", "/b/", "/a/"].map(|path| {
            let reply = server.ask(&format!("GET {path}?u={group} HTTP/1.0\r\n\r\n"));
            reply.rsplit('\n').next().unwrap().to_owned()
        })
    };
    assert_eq!(numbers("own"), ["1.", "1.", "2.", "3.", "2.", "1."]);
    assert_eq!(numbers("shared"), ["4."; 6]);
    assert_eq!(numbers("unsaid"), ["5.", "5.", "6.", "7.", "6.", "5."]);
}

#[test]
fn a_request_that_kills_its_server_uses_one_idle_connection_and_one_new_one() {
    for half_a_reply in ["", "HTTP/1.1 2"] {
        let all_there = Barrier::new(3);
        let backend = TestBackend::playing(move |mut peer| {
            loop {
                if peer.request()?.starts_with("GET /poison ") {
                    return peer.send_raw(half_a_reply);
                }
                all_there.wait();
                peer.send("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
            }
        });
        let server = Server::start(format!(
            "upstream u {{ server {}; keepalive 8; }}
             server {{ location / {{ proxy_pass http://u; }} }}",
            backend.address()
        ));
        let mut clients = [(); 3].map(|()| server.connect());
        clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.0\r\n\r\n"));
        clients.iter_mut().for_each(|client| assert!(client.rest().contains(" 200 OK\r\n")));
        clients.iter().for_each(|_| assert!(backend.asked().starts_with("GET / ")));
        let reply = server.ask("GET /poison HTTP/1.0\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
        let times = if half_a_reply.is_empty() { 2 } else { 1 };
        (0..times).for_each(|_| assert!(backend.asked().starts_with("GET /poison ")));
        backend.expect_unasked();
    }
}
