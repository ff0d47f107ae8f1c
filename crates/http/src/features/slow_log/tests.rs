//! Phases of requests through the real driver, by a clock that only the tests move.

use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use net::testing::FullListener;

use metrics::tree::{JsonPage, StatusTree};

use super::recent;
use crate::backend::testing::TestBackend;
use crate::h1::tests::{Client, PATIENCE, Server};
use crate::testing::{TestSite, refusal, site};

const REPLY: &str = "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi";

/// A backend that sends the first text when it is asked, and the second when it is told.
fn gated(first: &'static str, second: &'static str) -> (TestBackend, Sender<()>) {
    let (go, told) = channel::<()>();
    let told = Mutex::new(told);
    let backend = TestBackend::playing(move |mut peer| {
        while peer.request().is_some() {
            peer.send(first);
            let _ = told.lock().unwrap().recv_timeout(PATIENCE);
            peer.send(second);
        }
    });
    (backend, go)
}

/// A server that logs the phases of each request.
fn timed(main: &str, lines: &str) -> Server {
    timed_with(main, lines, |_| {})
}

fn timed_with(main: &str, lines: &str, files: impl FnOnce(&TestSite) + Send + 'static) -> Server {
    let http = format!(
        "error_log other.log; log_format phases '$uri $request_timing'; {main} \
         server {{ access_log e.log phases; {lines} }}"
    );
    Server::with(http, |_| {}, files)
}

fn ask(server: &Server, path: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.0\r\nHost: h\r\n\r\n"));
    client
}

/// Waits for the end of the next exchange; its line.
fn logged(server: &Server) -> String {
    server.logged();
    server.log_text().lines().last().expect("a line").to_owned()
}

#[test]
fn a_slow_client_takes_time_for_head_and_body() {
    for lines in ["", "proxy_request_buffering off;"] {
        let backend = TestBackend::replying(REPLY);
        let pass = format!("proxy_pass http://{}; {lines}", backend.address());
        let server = timed("", &format!("location / {{ {pass} }}"));
        let mut client = server.connect();
        client.send("POST / HTTP/1.1\r\n");
        server.advance(30);
        client.send("Host: h\r\nConnection: close\r\nContent-Length: 3\r\n\r\n");
        server.advance(20);
        client.send("abc");
        assert!(client.rest().ends_with("hi"));
        assert_eq!(logged(&server), r#"/ {"total":50,"head":30,"body":20}"#, "{lines}");
    }
}

#[test]
fn a_head_that_never_ends_is_all_that_took_time() {
    let server = timed("client_header_timeout 5s;", "location / { return 200; }");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHo");
    server.advance(5000);
    client.expect_end();
    assert!(logged(&server).ends_with(r#"{"total":5000,"head":5000}"#));
}

#[test]
fn an_unread_body_is_discarded_after_the_reply() {
    let server = timed("", "location / { return 200 ok; }");
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
    client.expect_reply_ending("ok");
    server.advance(11);
    client.send("abc");
    assert_eq!(logged(&server), r#"/ {"total":11,"body":11}"#);
}

#[test]
fn a_queue_comes_before_the_backend() {
    let (backend, go) = gated("", REPLY);
    let group = format!("upstream a {{ server {} max_conns=1; queue 2; }}", backend.address());
    let server = timed(&group, "location / { proxy_pass http://a; }");
    let mut first = ask(&server, "/1");
    backend.asked();
    let mut second = ask(&server, "/2");
    server.advance(25);
    go.send(()).unwrap();
    first.rest();
    assert_eq!(logged(&server), r#"/1 {"total":25,"backend_head":25}"#);
    backend.asked();
    server.advance(10);
    go.send(()).unwrap();
    second.rest();
    assert_eq!(logged(&server), r#"/2 {"total":35,"queue":25,"backend_head":10}"#);
}

#[test]
fn a_server_that_accepts_no_connection_takes_time_to_connect() {
    let full = FullListener::new();
    let pass = format!("proxy_pass http://{}; proxy_connect_timeout 70ms;", full.address);
    let server = timed("", &format!("location / {{ {pass} }}"));
    let mut client = ask(&server, "/");
    server.advance(70);
    client.rest();
    assert_eq!(logged(&server), r#"/ {"total":70,"connect":70}"#);
}

#[test]
fn a_backend_may_take_time_within_its_reply() {
    let (backend, go) = gated("HTTP/1.1 200 OK\nContent-Length: 4\n\nab", "cd");
    let pass = format!("proxy_pass http://{}; proxy_buffering off;", backend.address());
    let server = timed("", &format!("location / {{ {pass} }}"));
    let mut client = ask(&server, "/");
    client.expect_reply_ending("ab");
    server.advance(15);
    go.send(()).unwrap();
    assert_eq!(client.rest(), "cd");
    assert_eq!(logged(&server), r#"/ {"total":15,"backend_body":15}"#);
}

#[test]
fn a_name_that_is_not_resolved_takes_time() {
    let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = format!("resolver {}; resolver_timeout 60ms;", mute.local_addr().unwrap());
    let server = timed(&resolver, "location / { proxy_pass http://$arg_host; }");
    let mut client = ask(&server, "/?host=nowhere.test");
    server.advance(60);
    client.rest();
    assert_eq!(logged(&server), r#"/ {"total":60,"resolve":60}"#);
}

#[test]
fn auth_request_covers_what_its_subrequest_waits_for() {
    let (backend, go) = gated("", REPLY);
    let server = timed(
        "",
        &format!(
            "location / {{ auth_request /auth; empty_gif; }} \
             location /auth {{ proxy_pass http://{}; }}",
            backend.address()
        ),
    );
    let mut client = ask(&server, "/");
    backend.asked();
    server.advance(12);
    go.send(()).unwrap();
    client.rest();
    assert_eq!(logged(&server), r#"/ {"total":12,"auth_request":12}"#);
}

#[test]
fn other_subrequests_count_as_if_the_request_itself_had_waited() {
    let (backend, go) = gated("", REPLY);
    let server = timed_with(
        "",
        &format!(
            "location / {{ add_after_body /tail; }} \
             location /tail {{ proxy_pass http://{}; }}",
            backend.address()
        ),
        |site| drop(site.file("a.html", "<p>")),
    );
    let mut client = ask(&server, "/a.html");
    backend.asked();
    server.advance(9);
    go.send(()).unwrap();
    assert!(client.rest().ends_with("<p>hi"));
    assert_eq!(logged(&server), r#"/a.html {"total":9,"backend_head":9}"#);
}

#[test]
fn delays_of_limits_and_of_refusals_have_phases() {
    let server = timed(
        "limit_req_zone $uri zone=z:1m rate=1r/s;",
        "location / { limit_req zone=z burst=1; empty_gif; } \
         location /no { auth_delay 100ms; auth_basic a; auth_basic_user_file u; }",
    );
    ask(&server, "/").rest();
    assert_eq!(logged(&server), r#"/ {"total":0}"#);
    let mut client = ask(&server, "/");
    server.advance(1000);
    client.rest();
    assert_eq!(logged(&server), r#"/ {"total":1000,"limit_req":1000}"#);
    let mut client = ask(&server, "/no");
    server.advance(100);
    client.rest();
    assert_eq!(logged(&server), r#"/no {"total":100,"auth_delay":100}"#);
}

/// More than the buffers of sockets hold.
const LARGE: usize = 8 << 20;

#[test]
fn a_client_that_reads_slowly_takes_time() {
    let large = |site: &TestSite| drop(site.file("large", vec![b'x'; LARGE]));
    let server = timed_with("", "location / { }", large);
    let mut client = ask(&server, "/large");
    server.advance(33);
    assert!(client.rest().len() > LARGE);
    assert_eq!(logged(&server), r#"/large {"total":33,"send":33}"#);
}

#[test]
fn a_backend_is_read_ahead_while_the_client_takes_nothing() {
    let backend = TestBackend::playing(|mut peer| {
        peer.until(b"\r\n\r\n")?;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
        peer.send_raw([head.into_bytes(), vec![b'x'; LARGE]].concat())?;
        peer.report("all was taken");
        Some(())
    });
    let server = timed("", &format!("location / {{ proxy_pass http://{}; }}", backend.address()));
    let mut client = ask(&server, "/");
    client.expect_some();
    assert_eq!(backend.asked(), "all was taken");
    server.advance(17);
    assert!(client.rest().len() > LARGE);
    assert_eq!(logged(&server), r#"/ {"total":17,"send":17}"#);
}

#[test]
fn pauses_by_limit_rate_are_not_the_clients() {
    let file = |site: &TestSite| drop(site.file("file", "x".repeat(5000)));
    let server = timed_with("", "location / { limit_rate 1000; }", file);
    let mut client = ask(&server, "/file");
    let (steps, _) = server.steps_until_logged(500);
    client.rest();
    let text = server.log_text();
    let total = 500 * steps;
    assert!(steps > 2, "{text}");
    assert_eq!(text, format!("/file {{\"total\":{total},\"limit_rate\":{total}}}\n"));
}

#[test]
fn a_client_that_leaves_ends_the_wait_it_leaves() {
    let (backend, _go) = gated("", REPLY);
    let server = timed("", &format!("location / {{ proxy_pass http://{}; }}", backend.address()));
    let client = ask(&server, "/");
    backend.asked();
    server.advance(21);
    drop(client);
    assert_eq!(logged(&server), r#"/ {"total":21,"backend_head":21}"#);
}

#[test]
fn what_follows_the_reply_is_post_action() {
    let (backend, go) = gated("", REPLY);
    let server = timed(
        "",
        &format!(
            "location / {{ post_action /after; empty_gif; }} \
             location /after {{ proxy_pass http://{}; }}",
            backend.address()
        ),
    );
    let mut client = ask(&server, "/");
    backend.asked();
    server.advance(8);
    go.send(()).unwrap();
    client.rest();
    assert_eq!(logged(&server), r#"/after {"total":8,"post_action":8}"#);
}

#[test]
fn a_reply_names_the_phases_before_it() {
    let (backend, go) = gated("", REPLY);
    let server = timed(
        "",
        &format!(
            "location / {{ proxy_pass http://{}; proxy_set_header X-Timing $request_timing; \
             add_header Server-Timing $server_timing; }}",
            backend.address()
        ),
    );
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\n");
    server.advance(5);
    client.send("\r\n");
    assert!(backend.asked().contains("X-Timing: {\"total\":5,\"head\":5}\n"));
    server.advance(40);
    go.send(()).unwrap();
    let reply = client.rest();
    let field = "\r\nServer-Timing: head;dur=5, backend_head;dur=40, total;dur=45\r\n";
    assert!(reply.contains(field), "{reply}");
}

/// A server whose location `/` has these lines, and is passed to a backend.
fn slow(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log warn; server {{ {lines} \
             location / {{ proxy_pass http://{address}; }} \
             location /off/ {{ slow_log off; proxy_pass http://{address}; }} \
         }}"
    ))
}

#[test]
fn a_request_is_logged_from_the_threshold_on() {
    let (backend, go) = gated("", REPLY);
    let server = slow(&backend, "slow_log e.log threshold=40ms;");
    for (path, delay_ms) in [("/short", 39), ("/off/long", 400), ("/long", 40)] {
        let mut client = ask(&server, path);
        backend.asked();
        server.advance(delay_ms);
        go.send(()).unwrap();
        client.rest();
        server.logged();
    }
    let text = server.log_text();
    let (time, rest) = text.split_once(' ').unwrap();
    let address = backend.address();
    assert!(time.contains('T'), "{text}");
    assert_eq!(
        rest,
        format!(
            "unix: \"GET /long HTTP/1.0\" h 200 0.040s {address} \
             {{\"total\":40,\"backend_head\":40}}\n"
        )
    );
}

#[test]
fn a_tunnel_makes_no_request_slow() {
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        peer.send("HTTP/1.1 101 Switching\nUpgrade: foo\nConnection: upgrade\n\nhello");
        peer.read();
    });
    let upgrade = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";
    let lines = format!(
        "slow_log e.log phases threshold=40ms; access_log e.log phases; {upgrade} \
         proxy_read_timeout 1h;"
    );
    let address = backend.address();
    let server = Server::start(format!(
        "log_format phases $request_timing; \
         server {{ location / {{ {lines} proxy_pass http://{address}; }} }}"
    ));
    let mut client = server.connect();
    client.head("GET / HTTP/1.1\nHost: h\nUpgrade: foo\nConnection: upgrade\n");
    client.expect_reply_ending("hello");
    server.advance(5000);
    client.send("bye");
    drop(client);
    assert_eq!(logged(&server), r#"{"total":5000,"tunnel":5000}"#);
    assert_eq!(server.log_text().lines().count(), 1);
}

#[test]
fn lines_beyond_the_rate_are_counted() {
    let backend = TestBackend::replying(REPLY);
    let server = slow(&backend, "slow_log e.log threshold=0 rate=1r/m;");
    for path in ["/1", "/2", "/3", "/off/4"] {
        ask(&server, path).rest();
        server.logged();
    }
    assert_eq!(server.log_text().lines().count(), 1);
    server.advance(60_000);
    let text = server.log_text();
    let told = "slow requests left out of \"e.log\" by rate=1r/m: 2\n";
    assert!(text.lines().count() == 2 && text.ends_with(told), "{text}");
}

#[test]
fn the_last_slow_requests_are_kept_in_memory() {
    let lines = "slow_log a.log threshold=0 if=$arg_a; location / { return 204; }";
    let site = site(&format!("server {{ server_name s; status_zone z; {lines} }}"));
    for _ in 0..150 {
        site.send("GET /kept/first HTTP/1.0\n\n");
    }
    site.send("GET /kept/second HTTP/1.0\n\n");
    let mut tree = StatusTree::default();
    recent::show(&mut tree);
    let page = String::from_utf8(JsonPage::new(tree).text()).unwrap();
    let all = page.matches("\"at\":").count();
    let own: Vec<_> =
        page.split("\"request\":").filter(|one| one.starts_with("\"GET /kept/")).collect();
    assert!(all <= 100 && own.len() > 1, "{all}");
    assert!(own[0].starts_with("\"GET /kept/second HTTP/1.0\""), "{}", own[0]);
    let first =
        r#""GET /kept/first HTTP/1.0","host":"s","zone":"z","status":204,"time":0,"phases":{}}"#;
    assert!(own[1].starts_with(first), "{}", own[1]);
    assert_eq!(site.log("a.log"), "", "none has the argument");
}

#[test]
fn only_servers_with_a_use_for_it_are_timed() {
    let timed = |http: &str| {
        let site = site(http);
        let servers = site.generation.servers.iter();
        servers.map(|server| server.timed).collect::<Vec<_>>()
    };
    assert_eq!(timed("server { } server { location / { } }"), [false, false]);
    let slow = "slow_log a.log threshold=1s;";
    assert_eq!(timed(&format!("server {{ location / {{ {slow} }} }} server {{ }}")), [true, false]);
    assert_eq!(timed(&format!("{slow} server {{ slow_log off; }} server {{ }}")), [false, true]);
    assert_eq!(timed("log_format a $request_timing; server { } server { }"), [true, true]);
    assert_eq!(timed("server { add_header a $server_timing; } server { }"), [true, true]);
}

#[test]
fn invalid_lines_are_refused() {
    let table = [
        ("a.log", "\"slow_log\" must have \"threshold\" parameter:1"),
        ("a.log combined", "\"slow_log\" must have \"threshold\" parameter:1"),
        ("a.log none threshold=1s", "unknown log format \"none\":1"),
        ("a.log threshold=soon", "invalid time \"threshold=soon\":1"),
        ("a.log threshold=1s rate=10", "invalid rate \"rate=10\":1"),
        ("a.log threshold=1s rate=0r/s", "invalid rate \"rate=0r/s\":1"),
        ("a.log threshold=1s buffer=1k", "invalid parameter \"buffer=1k\":1"),
        ("off threshold=1s", "invalid parameter \"threshold=1s\":1"),
    ];
    for (words, expected) in table {
        assert_eq!(refusal(&format!("slow_log {words};")), expected, "{words}");
    }
}
