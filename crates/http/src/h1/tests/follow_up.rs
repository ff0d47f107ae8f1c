//! What follows a reply: copies of the request in the background, and `post_action`.

use net::LentFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::exchange::{BACKGROUND_TASKS_MAX, StoredContent};

/// A server whose `/copy` and `/slow` take 30 ms, and then increase `done`.
fn server(http: &str, done: &Arc<AtomicU32>) -> Server {
    let done = done.clone();
    let change = move |site: &mut Site| {
        for name in ["/copy", "/slow"] {
            if site.locations.iter().all(|location| &*location.name != name.as_bytes()) {
                continue;
            }
            let done = done.clone();
            handle(site, name, move |_| {
                let done = done.clone();
                wait(|x| {
                    LentFuture::new(async move {
                        net::sleep(Duration::from_millis(30)).await;
                        let length = match x.request.body.kept().map(|kept| &kept.content) {
                            Some(StoredContent::Memory(body)) => body.len() as u32,
                            _ => 0,
                        };
                        done.fetch_add(1 + length, Ordering::SeqCst);
                        Flow::Status(204)
                    })
                })
            });
        }
    };
    Server::with(http, change, |_| {})
}

/// What `empty_gif` answers to `DELETE`.
fn refused() -> String {
    page("405 Not Allowed").replace("close", "keep-alive")
}

#[test]
fn a_copy_delays_neither_the_reply_nor_the_next_request() {
    let done = Arc::default();
    let server = server(
        "server {
            location / { mirror /copy; mirror /copy; empty_gif; }
            location /copy { }
            location /next { return 200 next; }
        }",
        &done,
    );
    let mut client = server.connect();
    client.head("DELETE /next/../a HTTP/1.1\nHost: a\nContent-Length: 3\n");
    client.send("abc");
    client.head("GET /next HTTP/1.1\nHost: a\n");
    client.expect(&refused());
    client.expect(&text("200 OK", "keep-alive", "next"));
    assert_eq!(done.load(Ordering::SeqCst), 0);
    assert_eq!(server.logged().0, 405);
    server.advance(30);
    assert_eq!(done.load(Ordering::SeqCst), 2 * (1 + 3));
}

#[test]
fn a_copy_outlives_a_client_that_leaves() {
    let done = Arc::default();
    let server = server("server { location /copy { } location /slow { mirror /copy; } }", &done);
    let mut client = server.connect();
    client.head("GET /slow HTTP/1.1\nHost: a\n");
    drop(client);
    assert_eq!(server.logged(), (499, 0));
    server.advance(30);
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[test]
fn a_copy_that_closes_its_connection_leaves_the_client_its_own() {
    let server = Server::start(
        "server { location / { mirror /copy; empty_gif; } location /copy { return 444; } }",
    );
    let mut client = server.connect();
    for _ in 0..2 {
        client.head("DELETE / HTTP/1.1\nHost: a\n");
        client.expect(&refused());
    }
}

#[test]
fn copies_beyond_the_limit_are_dropped_and_logged() {
    let done = Arc::default();
    let server = server(
        "error_log e.log; keepalive_requests 10000; server {
            location / { mirror /copy; empty_gif; }
            location /copy { }
        }",
        &done,
    );
    let mut client = server.connect();
    for _ in 0..=BACKGROUND_TASKS_MAX {
        client.head("DELETE / HTTP/1.1\nHost: a\n");
        client.expect(&refused());
    }
    server.advance(30);
    assert_eq!(done.load(Ordering::SeqCst) as usize, BACKGROUND_TASKS_MAX);
    let dropped = "too many background tasks, a subrequest is dropped";
    assert!(server.log().iter().any(|line| line.starts_with(dropped)));
}

#[test]
fn post_action_runs_after_the_reply() {
    let done = Arc::default();
    let server = server(
        "server {
            location / { post_action /slow; return 200 $uri; }
            location /slow { }
            location /named { post_action @named; return 200 x; }
            location @named { empty_gif; add_header X y; }
            location /missing { post_action missing; return 200 x; }
            location /cycle { post_action /cycle; return 200 x; }
        }",
        &done,
    );
    let mut client = server.connect();
    client.head("GET /a HTTP/1.1\nHost: a\n");
    client.expect(&text("200 OK", "keep-alive", "/a"));
    assert_eq!(done.load(Ordering::SeqCst), 0);
    server.advance(30);
    assert_eq!(server.logged().0, 204);
    assert_eq!(done.load(Ordering::SeqCst), 1);
    client.head("GET /a HTTP/1.1\nHost: a\nConnection: close\n");
    client.expect(&text("200 OK", "close", "/a"));
    server.advance(30);
    client.expect_end();
    assert_eq!(done.load(Ordering::SeqCst), 2);
    assert_eq!(server.logged().0, 204);
    for (target, status) in [("/named", 200), ("/missing", 500), ("/cycle", 500)] {
        let mut client = server.connect();
        client.head(&format!("GET {target} HTTP/1.1\nHost: a\n"));
        client.expect(&text("200 OK", "keep-alive", "x"));
        assert_eq!(server.logged().0, status, "{target}");
        if status == 500 {
            // Any reply with status 500 closes the connection.
            client.expect_end();
        }
    }
}

#[test]
fn post_action_runs_after_a_disconnect_but_not_after_444() {
    let done = Arc::default();
    let server = server(
        "server {
            location / { post_action /copy; return 444; }
            location /copy { }
            location /slow { post_action /copy; }
        }",
        &done,
    );
    let mut client = server.connect();
    client.head("GET /slow HTTP/1.1\nHost: a\n");
    drop(client);
    server.advance(30);
    assert_eq!(server.logged().0, 204);
    assert_eq!(done.load(Ordering::SeqCst), 1);
    assert_eq!(server.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "");
    assert_eq!(server.logged().0, 444);
    assert_eq!(done.load(Ordering::SeqCst), 1);
}
