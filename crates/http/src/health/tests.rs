//! Health checks with real sockets: scripted backends, a worker that serves, and its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::testing::{TestBackend, closed_port};
use crate::h1::tests::{PATIENCE, Server};

/// A server with these backends, and a location that proxies to them.
fn server(addresses: &[String], lines: &str) -> Server {
    let servers: String = addresses.iter().map(|address| format!("server {address}; ")).collect();
    serve(&format!(
        "upstream u {{ {servers} }}
         server {{ location / {{ proxy_pass http://u; {lines} }} }}"
    ))
}

fn serve(http: &str) -> Server {
    let server = Server::start(format!("error_log e.log info; {http}"));
    // Checks follow each other in time, and the tests wait for their results.
    server.start_clock();
    server
}

/// Waits for a line of the log with this beginning.
fn await_line(server: &Server, start: &str) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let lines = server.lines();
        if let Some(line) = lines.iter().find(|line| line.starts_with(start)) {
            return line.clone();
        }
        assert!(Instant::now() < end, "{start:?} in {lines:#?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn count(server: &Server, start: &str) -> usize {
    server.lines().iter().filter(|line| line.starts_with(start)).count()
}

/// The last line of the body that a client receives.
fn get(server: &Server) -> String {
    let reply = server.ask("GET /page HTTP/1.0\r\nHost: h\r\n\r\n");
    reply.rsplit("\r\n").next().unwrap_or_default().to_owned()
}

fn await_answer(server: &Server, expected: &str) {
    let end = Instant::now() + PATIENCE;
    while get(server) != expected {
        assert!(Instant::now() < end, "still no {expected}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A backend that answers with its name, and that is healthy while the switch is on.
fn named(name: &str, well: &Arc<AtomicBool>) -> TestBackend {
    let (name, well) = (name.to_owned(), well.clone());
    TestBackend::answering(move |request| {
        if request.contains("GET /page ") || well.load(SeqCst) {
            return format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{name}", name.len());
        }
        "HTTP/1.1 503 Busy\nContent-Length: 0\n\n".to_owned()
    })
}

#[test]
fn an_unhealthy_server_gets_no_requests_and_each_change_is_logged_once() {
    let (well, always) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
    let (one, two) = (named("one", &well), named("two", &always));
    let server = server(&[one.address(), two.address()], "health_check interval=20ms;");
    assert_eq!(one.asked(), "GET / HTTP/1.1\nHost: u\n\n");
    assert_ne!(get(&server), get(&server));
    assert_eq!(count(&server, "[notice] peer is healthy"), 0);

    well.store(false, SeqCst);
    let line = await_line(&server, "[warn]");
    let peer = format!("health check \"\" of peer {} in upstream \"u\"", one.address());
    assert_eq!(line, format!("[warn] peer is unhealthy while checking status code, {peer}"));
    let cause = format!("unexpected status code 503 while checking status code, {peer}");
    assert_eq!(await_line(&server, "[error]"), format!("[error] {cause}"));
    assert!((0..4).all(|_| get(&server) == "two"));
    await_line(&server, "[info] unexpected");

    well.store(true, SeqCst);
    let line = await_line(&server, "[notice]");
    assert_eq!(line, format!("[notice] peer is healthy while checking status code, {peer}"));
    assert_ne!(get(&server), get(&server));
    for (start, times) in [("[error]", 1), ("[warn]", 1), ("[notice]", 1)] {
        assert_eq!(count(&server, start), times, "{start}");
    }
}

#[test]
fn without_healthy_servers_the_reply_is_502() {
    let never = Arc::new(AtomicBool::new(false));
    let backend = named("one", &never);
    let server = server(&[backend.address()], "health_check interval=20ms fails=3;");
    await_line(&server, "[warn] peer is unhealthy");
    assert_eq!(count(&server, "[info] unexpected status code 503"), 2);
    assert!(server.ask("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 502"));
    assert!(await_line(&server, "[error] *").contains("no live upstreams"));
}

#[test]
fn a_mandatory_check_precedes_the_first_request() {
    let (release, held) = channel();
    let held = std::sync::Mutex::new(held);
    let backend = TestBackend::answering(move |request| {
        if request.starts_with("GET /check ") {
            let _ = held.lock().unwrap().recv_timeout(PATIENCE);
        }
        "HTTP/1.1 200 OK\nContent-Length: 4\n\nwell".to_owned()
    });
    let server = server(&[backend.address()], "health_check mandatory uri=/check;");
    assert!(backend.asked().starts_with("GET /check "));
    assert!(server.ask("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 502"));
    backend.expect_unasked();
    release.send(()).unwrap();
    await_line(&server, "[notice] peer is healthy while checking status code");
    assert_eq!(get(&server), "well");
}

#[test]
fn check_requests_are_those_of_the_location() {
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
    let elsewhere = closed_port();
    let port = backend.port;
    let lines = format!(
        "proxy_set_header Host $host; proxy_set_header X-Check $request_uri; proxy_method HEAD;
         proxy_set_header Empty $http_none; proxy_set_body hello; proxy_http_version 1.0;
         health_check port={port} uri=/a/../b?c=%20;"
    );
    let server = serve(&format!(
        "upstream U {{ server 127.0.0.1:{elsewhere}; }}
         server {{ server_name first; location /x {{ }} }}
         server {{ server_name s; location /y/ {{ proxy_pass http://u/z/; {lines} }} }}"
    ));
    assert_eq!(
        backend.asked(),
        "HEAD /a/../b?c=%20 HTTP/1.0\nHost: s\nX-Check: /a/../b?c=%20\nContent-Length: 5\n\nhello"
    );
    assert_eq!(server.lines(), [""; 0]);
}

#[test]
fn failures_are_logged_in_nginx_words() {
    let big = format!("HTTP/1.1 200 OK\nX: {}", "x".repeat(5000));
    let table: [(&str, &str); 6] = [
        ("", "upstream prematurely closed connection while reading response header from upstream"),
        (
            "hello\n\n",
            "upstream sent no valid HTTP/1.0 header while reading response header from upstream",
        ),
        (&big, "upstream sent too big header while reading response header from upstream"),
        (
            "HTTP/1.1 200 OK\nContent-Length: 9\n\nabc",
            "upstream prematurely closed connection while reading upstream",
        ),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz",
            "upstream sent invalid chunked response while reading upstream",
        ),
        ("HTTP/1.1 200 OK\n\nno", "unexpected body while checking body"),
    ];
    for (reply, expected) in table {
        let text = reply.to_owned();
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send(&text);
            peer.end();
            peer.wait_for_end();
        });
        let server = serve(&format!(
            "match m {{ body ~ yes; }} upstream u {{ server {}; }}
             server {{ location / {{ proxy_pass http://u; health_check match=m; }} }}",
            backend.address()
        ));
        let line = await_line(&server, "[error]");
        let peer = format!(", health check \"m\" of peer {} in upstream \"u\"", backend.address());
        assert_eq!(line, format!("[error] {expected}{peer}"));
    }
}

#[test]
fn a_server_that_refuses_or_does_not_answer_is_unhealthy() {
    let address = format!("127.0.0.1:{}", closed_port());
    let refused = server(std::slice::from_ref(&address), "health_check;");
    let peer = format!(", health check \"\" of peer {address} in upstream \"u\"");
    let while_connecting = "while connecting to upstream";
    assert_eq!(
        await_line(&refused, "[error]"),
        format!("[error] connect() failed (111: Connection refused) {while_connecting}{peer}")
    );
    let line = await_line(&refused, "[warn]");
    assert_eq!(line, format!("[warn] peer is unhealthy {while_connecting}{peer}"));

    let silent = TestBackend::playing(|mut peer| peer.wait_for_end());
    let lines = format!("proxy_read_timeout 50ms; health_check port={};", silent.port);
    let late = server(&[silent.address()], &lines);
    let line = await_line(&late, "[error]");
    let words = "while reading response header from upstream, health check";
    let late = format!("[error] upstream timed out (110: Connection timed out) {words}");
    assert!(
        line.starts_with(&late) && line.ends_with(&format!(", port {}", silent.port)),
        "{line}"
    );
}

#[test]
fn keepalive_time_reuses_the_connection_of_a_check() {
    let whole = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\r\nhi\r\n0\r\n\r\n";
    let table = [
        ("health_check interval=10ms keepalive_time=1h;", whole, 1),
        ("health_check interval=10ms;", whole, 4),
        (
            "health_check interval=10ms keepalive_time=1h;",
            "HTTP/1.1 200 OK\nConnection: close\nContent-Length: 0\n\n",
            4,
        ),
    ];
    for (lines, reply, expected) in table {
        let backend = TestBackend::replying(reply);
        let server = server(&[backend.address()], lines);
        (0..4).for_each(|_| _ = backend.asked());
        assert_eq!(backend.connections().min(4), expected, "{lines} {reply}");
        assert_eq!(server.lines(), [""; 0]);
    }
}

#[test]
fn a_closed_idle_connection_is_not_a_failure() {
    for at_once in [true, false] {
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
            if !at_once {
                // The connection is closed after the next request was sent.
                peer.request();
            }
        });
        let lines = "health_check interval=10ms keepalive_time=1h;";
        let server = server(&[backend.address()], lines);
        (0..6).for_each(|_| _ = backend.asked());
        assert_eq!(server.lines(), [""; 0], "{at_once}");
    }
}

#[test]
fn only_the_beginning_of_a_body_is_matched() {
    let x = "x".repeat(super::location::BODY_MAX - 4);
    for (body, passes) in [(format!("{x}here"), true), (format!("{x}-here"), false)] {
        let backend = TestBackend::replying(&format!("HTTP/1.0 200 OK\n\n{body}{x}"));
        let server = serve(&format!(
            "match m {{ body ~ here; }} upstream u {{ server {}; }}
             server {{ location / {{ proxy_pass http://u; health_check mandatory match=m; }} }}",
            backend.address()
        ));
        let start = if passes { "[notice] peer is healthy" } else { "[warn] peer is unhealthy" };
        assert!(await_line(&server, start).contains("while checking body, health check \"m\""));
    }
}

#[test]
fn require_sees_variables_of_the_reply() {
    for (status, passes) in [("204 Fine", true), ("200 OK", false)] {
        let backend =
            TestBackend::replying(&format!("HTTP/1.1 {status}\nX: y\nContent-Length: 0\n\n"));
        let address = backend.address();
        let server = serve(&format!(
            "map \"$upstream_status $upstream_addr $upstream_http_x\" $good {{
                 default 0; \"204 {address} y\" 1;
             }}
             match m {{ require $good; }}
             upstream u {{ server {address}; }}
             server {{ location / {{ proxy_pass http://u; health_check mandatory match=m; }} }}"
        ));
        let start = if passes { "[notice] peer is healthy" } else { "[warn] peer is unhealthy" };
        assert!(await_line(&server, start).contains("while checking variables"));
        assert_eq!(count(&server, "[error] \"$good\" is \"0\" while"), usize::from(!passes));
    }
}

#[test]
fn an_upstream_block_checks_its_servers_as_tengine_does() {
    let (down, up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
    let (one, two) = (named("one", &down), named("two", &up));
    let server = serve(&format!(
        r#"upstream u {{
             server {}; server {};
             check interval=20 rise=2 fall=2 timeout=10000 type=http;
             check_http_send "GET /t HTTP/1.0\r\nHost: x\r\n\r\n";
             check_http_expect_alive http_2xx;
         }}
         server {{ location / {{ proxy_pass http://u; }} }}"#,
        one.address(),
        two.address(),
    ));
    assert_eq!(one.asked(), "GET /t HTTP/1.0\nHost: x\n\n");
    await_answer(&server, "two");
    assert!((0..4).all(|_| get(&server) == "two"));
    down.store(true, SeqCst);
    await_answer(&server, "one");
}

#[test]
fn check_keepalive_requests_limits_a_connection() {
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
    let _server = serve(&format!(
        r#"upstream u {{
             server {};
             check interval=10 type=http timeout=10000;
             check_http_send "HEAD / HTTP/1.1\r\n\r\n"; check_keepalive_requests 3;
         }}
         server {{ location / {{ proxy_pass http://u; }} }}"#,
        backend.address(),
    ));
    (0..9).for_each(|_| assert_eq!(backend.asked(), "HEAD / HTTP/1.1\n\n"));
    assert!((3..=4).contains(&backend.connections()));
}

/// A server whose checks request `/check`, with this reply, and whose pages are `hi`.
fn answering_checks(check: &'static str, lines: &str) -> (Server, TestBackend) {
    let backend = TestBackend::playing(move |mut peer| {
        while let Some(request) = peer.request() {
            if !request.starts_with("GET /check ") {
                return peer.send("HTTP/1.0 200 OK\n\nhi");
            }
            peer.send(check);
        }
    });
    let server = serve(&format!(
        "upstream u {{ server {}; check type=http {lines} }}
         server {{ location / {{ proxy_pass http://u; }} }}",
        backend.address(),
    ));
    (server, backend)
}

#[test]
fn an_endless_body_closes_the_connection_but_is_not_a_failure() {
    let (server, backend) = answering_checks(
        "HTTP/1.1 200 OK\nContent-Length: 10\n\nhalf",
        r#"interval=10 fall=1 rise=1 timeout=50; check_keepalive_requests 9;
           check_http_send "GET /check HTTP/1.1\r\n\r\n";"#,
    );
    await_answer(&server, "hi");
    let before = backend.connections();
    for _ in 0..4 {
        assert_eq!(get(&server), "hi");
        while !backend.asked().starts_with("GET /check ") {}
    }
    assert!(backend.connections() >= before + 6, "each check has a connection of its own");
}

#[test]
fn a_websocket_check_expects_101() {
    let (server, ..) = answering_checks(
        "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: upgrade\n\n",
        r#"interval=10 rise=2 timeout=10000; check_keepalive_requests 2;
           check_http_expect_alive http_1xx;
           check_http_send "GET /check HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";"#,
    );
    await_answer(&server, "hi");
}

#[test]
fn a_tcp_check_only_connects() {
    let backend = TestBackend::playing(|mut peer| {
        let asked = peer.take().unwrap_or_default();
        peer.report(&String::from_utf8_lossy(&asked));
        if !asked.is_empty() {
            peer.send("HTTP/1.0 200 OK\n\nhi");
        }
    });
    let server = serve(&format!(
        "upstream u {{
             server {}; server 127.0.0.1:{};
             check interval=20 rise=2 fall=1 default_down=true type=tcp timeout=10000;
         }}
         server {{ location / {{ proxy_pass http://u; proxy_next_upstream off; }} }}",
        backend.address(),
        closed_port(),
    ));
    // Two connections of checks; the next is a client's.
    for _ in 0..2 {
        assert_eq!(backend.asked(), "");
    }
    await_answer(&server, "hi");
    assert!((0..4).all(|_| get(&server) == "hi"));
}

/// A FastCGI application that answers with this status.
fn application(status: &'static str) -> TestBackend {
    const STDIN_END: &[u8] = b"\x01\x05\0\x01\0\0\0\0";
    let text = format!("Status: {status}\n\n{status}");
    let head = [1, 6, 0, 1, 0, text.len() as u8, 0, 0];
    let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    TestBackend::of_bytes(STDIN_END, [&head[..], text.as_bytes(), &end].concat())
}

#[test]
fn fastcgi_applications_are_checked_with_fastcgi() {
    let (well, sick) = (application("200"), application("500"));
    let (one, two) = (well.address(), sick.address());
    let server = serve(&format!(
        "upstream u {{ server {one}; server {two}; }}
         match good {{ status 200; body ~ ^200$; }}
         server {{ location / {{
             fastcgi_pass u; fastcgi_param U $uri; fastcgi_param M $request_method;
             health_check mandatory interval=20ms uri=/status match=good;
         }} }}"
    ));
    let line = await_line(&server, "[warn]");
    let peer = format!("health check \"good\" of peer {two} in upstream \"u\"");
    assert_eq!(line, format!("[warn] peer is unhealthy while checking status code, {peer}"));
    await_line(&server, "[notice] peer is healthy");
    for backend in [&well, &sick] {
        let asked = backend.asked();
        assert!(asked.contains("\\x01\\x07U/status\\x01\\x03MGET"), "{asked}");
    }
    await_answer(&server, "200");
    assert!((0..4).all(|_| get(&server) == "200"));
}

#[test]
fn an_application_that_does_not_speak_fastcgi_is_unhealthy() {
    let backend = TestBackend::of_bytes(b"\0\0\0\0", "HTTP/1.1 200 OK\r\n\r\n");
    let address = backend.address();
    let server = serve(&format!(
        "upstream u {{ server {address}; }}
         server {{ location / {{ fastcgi_pass u; health_check interval=20ms; }} }}"
    ));
    let cause = "upstream sent unsupported FastCGI protocol version: 72";
    let line = await_line(&server, "[error]");
    assert!(line.starts_with(&format!("[error] {cause} while ")), "{line}");
    await_line(&server, "[warn] peer is unhealthy while ");
}
