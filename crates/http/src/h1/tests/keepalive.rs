//! Connections that serve more than one request.

use super::*;
use crate::drive::WorkerContext;

const ROOMS: &str = "
    keepalive_timeout 75s 60s;
    server {
        location / { return 200 $request_uri; }
        location /few { keepalive_requests 2; keepalive_timeout 75s; return 200 few; }
        location /none { keepalive_timeout 0; return 200 none; }
        location /short { keepalive_timeout 100ms 1; return 200 short; }
        location /brief { keepalive_time 0; return 200 brief; }
        location /ms { keepalive_disable none; return 200 ms; }
        location /safari { keepalive_disable safari; return 200 safari; }
    }";

fn kept(body: &str) -> String {
    text("200 OK", "keep-alive\nKeep-Alive: timeout=60", body)
}

#[test]
fn requests_may_be_sequential_or_pipelined() {
    let server = Server::start(ROOMS);
    let mut client = server.connect();
    for path in ["/1", "/2"] {
        client.head(&format!("GET {path} HTTP/1.1\nHost: a\n"));
        client.expect(&kept(path));
    }
    let requests = "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\nGET /5";
    client.send(requests);
    client.expect(&kept("/3"));
    client.expect(&kept("/4"));
    client.send(" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.expect(&text("200 OK", "close", "/5"));
    client.expect_end();
}

#[test]
fn a_parked_connection_serves_further_requests() {
    let server = Server::start(ROOMS);
    let (mut client, mut gone) = (server.connect(), server.connect());
    for client in [&mut client, &mut gone] {
        client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
        client.expect(&kept("/1"));
    }
    while server.parked() < 2 {
        server.advance(500);
    }
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    client.expect(&kept("/2"));
    drop(gone);
    while server.parked() > 0 {
        server.advance(1);
    }
    client.send("GET /few HTTP/1.1\r\nHost: a\r\n\r\n");
    client.expect(&text("200 OK", "close", "few"));
}

#[test]
fn a_thousand_pipelined_requests_are_answered() {
    let server = Server::start(ROOMS);
    let mut client = server.connect();
    let mut sender = Client(client.0.try_clone().unwrap());
    let sending = thread::spawn(move || {
        for number in 0..999 {
            sender.head(&format!("GET /{number} HTTP/1.1\nHost: a\n"));
        }
    });
    for number in 0..999 {
        client.expect(&kept(&format!("/{number}")));
    }
    sending.join().unwrap();
}

#[test]
fn connections_are_closed_by_settings_and_clients() {
    let server = Server::start(ROOMS);
    let table = [
        ("/none", "", "none"),
        ("/", "Connection: close\n", "/"),
        ("/", "Connection: x, Close\n", "/"),
        ("/safari", "User-Agent: Mac OS X Safari/7534.48.3\n", "safari"),
    ];
    for (path, fields, body) in table {
        let request = format!("GET {path} HTTP/1.1\nHost: a\n{fields}\n").replace('\n', "\r\n");
        assert_eq!(server.ask(&request), text("200 OK", "close", body), "{path} {fields}");
    }
    let mut client = server.connect();
    client.head("GET / HTTP/1.1\nHost: a\n");
    client.expect(&kept("/"));
    // `keepalive_time 0` closes a connection that is at least one millisecond old.
    server.advance(5);
    client.head("GET /brief HTTP/1.1\nHost: a\n");
    client.expect(&text("200 OK", "close", "brief"));
    let post = "POST /ms HTTP/1.1\r\nHost: a\r\nUser-Agent: MSIE 5.0\r\n\r\n";
    let mut client = server.connect();
    client.send(post);
    client.expect(&kept("ms"));
    client.send(post.replace("/ms", "/"));
    client.expect(&text("200 OK", "close", "/"));
}

#[test]
fn keepalive_requests_limits_the_requests_of_a_connection() {
    let server = Server::start(ROOMS);
    let mut client = server.connect();
    client.head("GET /few HTTP/1.1\nHost: a\n");
    client.expect(&kept("few"));
    client.head("GET /few HTTP/1.1\nHost: a\n");
    client.expect(&text("200 OK", "close", "few"));
    client.expect_end();
}

#[test]
fn an_idle_connection_is_closed() {
    let server = Server::start(ROOMS);
    let mut client = server.connect();
    client.head("GET /short HTTP/1.1\nHost: a\n");
    client.expect(&text("200 OK", "keep-alive\nKeep-Alive: timeout=1", "short"));
    server.advance(99);
    client.expect_nothing();
    server.advance(1);
    client.expect_end();
}

#[test]
fn a_stopping_worker_closes_idle_connections() {
    let server = Server::start(
        "server {
            location / { return 200 x; }
            location /least { keepalive_min_timeout 100ms; return 200 x; }
        }",
    );
    let mut idle = server.connect();
    idle.head("GET / HTTP/1.1\nHost: a\n");
    idle.expect(&text("200 OK", "keep-alive", "x"));
    let mut least = server.connect();
    least.head("GET /least HTTP/1.1\nHost: a\n");
    least.expect(&text("200 OK", "keep-alive", "x"));
    let mut fresh = server.connect();
    fresh.send("GET / HTTP/1.1\r\n");
    server.drain();
    idle.expect_end();
    fresh.send("Host: a\r\n\r\n");
    fresh.expect(&text("200 OK", "close", "x"));
    server.advance(100);
    least.expect_end();
}

/// After `worker_shutdown_timeout`, requests that began under an old configuration end. Connections
/// stay open.
#[test]
fn a_cut_ends_requests_of_older_generations() {
    let server = Server::start("server { location / { return 200 a; } }");
    let [mut idle, mut old, mut new] = [(); 3].map(|()| server.connect());
    for client in [&mut idle, &mut old, &mut new] {
        client.head("GET / HTTP/1.1\nHost: a\n");
        client.expect(&text("200 OK", "keep-alive", "a"));
        server.logged();
    }
    old.send("GET / HTTP/1.1\r\n");
    server.advance(1);
    server.reload();
    new.send("GET / HTTP/1.1\r\n");
    server.advance(1);
    server.cut_before(2);
    old.expect_end();
    new.head("Host: a\n");
    idle.head("GET / HTTP/1.1\nHost: a\n");
    for client in [&mut idle, &mut new] {
        client.expect(&text("200 OK", "keep-alive", "a"));
    }
    server.cut();
    new.expect_end();
}

#[test]
fn the_future_of_a_connection_is_small() {
    let site = site_with("server { }", |_| {});
    let size = net::run(async {
        let context = WorkerContext::new(site.generation.clone(), false);
        let (near, far) = UnixStream::pair().unwrap();
        let stream = Stream::new(far.into());
        let client =
            std::rc::Rc::new(crate::client::Client::new(1, None, net::SocketProbe::NONE, 0));
        let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
        let arrival = net::Arrival { fd: near.into(), peer: None, slot: 0 };
        let permit = balancer.assign(arrival).ok().flatten().expect("room for one").permit;
        let held =
            super::super::ConnectionState { _open: context.counts.accept(), _permit: permit };
        size_of_val(&crate::accept::serve(context, client, stream, Vec::new(), held))
    });
    let size = size.unwrap();
    assert!(size <= 1024, "{size} bytes");
}
