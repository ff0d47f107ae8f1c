//! Exchanges that wait for something other than their client, while the client is watched.

use net::LentFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// Counts its drops.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server whose `/forever` never answers, and whose `/slow` answers after 30 ms.
fn server(dropped: &Arc<AtomicU32>) -> Server {
    let dropped = dropped.clone();
    Server::with(
        "server { location /forever { } location /slow { } location / { return 200 x; } }",
        |site| {
            handle(site, "/forever", move |_| {
                let guard = Dropped(dropped.clone());
                wait(|_| {
                    LentFuture::new(async move {
                        let _guard = guard;
                        std::future::pending().await
                    })
                })
            });
            handle(site, "/slow", |_| {
                wait(|_| {
                    LentFuture::new(async {
                        net::sleep(Duration::from_millis(30)).await;
                        Flow::Status(204)
                    })
                })
            });
        },
        |_| {},
    )
}

#[test]
fn a_client_disconnect_drops_the_exchange() {
    let dropped = Arc::default();
    let server = server(&dropped);
    for rest in ["", "GET /never HTTP/1.1\r\n"] {
        let mut client = server.connect();
        client.head("GET /forever HTTP/1.1\nHost: a\n");
        client.send(rest);
        client.expect_nothing();
        drop(client);
        assert_eq!(server.logged(), (499, 0));
    }
    let mut client = server.connect();
    client.head("GET /forever HTTP/1.1\nHost: a\n");
    client.end();
    client.expect_end();
    assert_eq!(server.logged(), (499, 0));
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
}

#[test]
fn bytes_received_during_a_wait_are_the_next_request() {
    let server = server(&Arc::default());
    let mut client = server.connect();
    client.head("GET /slow HTTP/1.1\nHost: a\n");
    client.head("GET / HTTP/1.1\nHost: a\n");
    server.advance(30);
    client.expect(&reply("204 No Content", "Connection: keep-alive\n", ""));
    client.expect(&text("200 OK", "keep-alive", "x"));
}

#[test]
fn auth_delay_delays_no_other_request() {
    let server = Server::start(
        "server { location / { return 200 x; } location /a { auth_delay 100ms; auth_basic a;
             auth_basic_user_file u; } }",
    );
    let mut refused: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut refused {
        client.head("GET /a HTTP/1.1\nHost: a\nConnection: close\n");
    }
    let mut other = server.connect();
    other.head("GET / HTTP/1.1\nHost: a\n");
    other.expect(&text("200 OK", "keep-alive", "x"));
    server.advance(99);
    refused[0].expect_nothing();
    server.advance(1);
    for client in &mut refused {
        let answer = client.rest();
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("WWW-Authenticate: "));
    }
}

#[test]
fn outlives_client_may_be_set_during_a_wait() {
    let server = Server::with(
        "server {
            location /late { }
            location /asks { auth_request /late; empty_gif; }
            location /asks-first { auth_request /late; }
        }",
        |site| {
            handle(site, "/late", |_| {
                wait(|x| {
                    LentFuture::new(async {
                        net::yield_now().await;
                        x.outlives_client.set(true);
                        net::sleep(Duration::from_millis(30)).await;
                        Flow::Status(204)
                    })
                })
            });
            handle(site, "/asks-first", |_| wait(|_| LentFuture::new(std::future::pending())));
        },
        |_| {},
    );
    for (target, status) in [("/late", 204), ("/asks", 200), ("/asks-first", 499)] {
        let mut client = server.connect();
        client.head(&format!("GET {target} HTTP/1.1\nHost: a\n"));
        server.advance(1);
        drop(client);
        server.advance(30);
        assert_eq!(server.logged().0, status, "{target}");
    }
}
