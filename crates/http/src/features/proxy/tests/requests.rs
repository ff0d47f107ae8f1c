//! Requests to a backend, and the locations that send them.

use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;

const EMPTY: &str = "HTTP/1.1 200 OK\nContent-Length: 0\n\n";

#[test]
fn a_missing_slash_is_redirected() {
    let backend = TestBackend::replying(EMPTY);
    let address = backend.address();
    let server = Server::start(format!(
        "server {{
             absolute_redirect off;
             location /a/ {{ proxy_pass http://{address}; }}
             location /b/ {{ return 204; }}
             location = /c/ {{ proxy_pass http://{address}; }}
             location /d/ {{ proxy_pass http://{address}; }}
             location /d {{ return 204; }}
             location \"/e f/\" {{ proxy_pass http://{address}; }}
             location /g/ {{ location /g/h/ {{ proxy_pass http://{address}; }} return 204; }}
             location /i/ {{ internal; proxy_pass http://{address}; }}
             location ~ . {{ return 403; }}
         }}"
    ));
    for (target, status, location) in [
        ("/a", "301 Moved Permanently", "/a/"),
        ("/a?b=c", "301 Moved Permanently", "/a/?b=c"),
        ("/b", "403 Forbidden", ""),
        ("/c", "301 Moved Permanently", "/c/"),
        ("/d", "403 Forbidden", ""),
        ("/e%20f", "301 Moved Permanently", "/e%20f/"),
        ("/g/h", "301 Moved Permanently", "/g/h/"),
        ("/i", "404 Not Found", ""),
    ] {
        let reply = server.ask(&format!("GET {target} HTTP/1.0\r\n\r\n"));
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{target}: {reply}");
        assert_eq!(values(&reply, "Location").join("|"), location, "{target}");
    }
    backend.expect_unasked();
}

#[test]
fn a_target_without_a_path_is_the_root() {
    let backend = TestBackend::replying(EMPTY);
    let address = backend.address();
    let server =
        Server::start(format!("server {{ location / {{ proxy_pass http://{address}; }} }}"));
    for (target, asked) in [("http://h", "/"), ("http://h?a=b", "/?a=b"), ("http://h/?", "/?")] {
        server.ask(&format!("GET {target} HTTP/1.0\r\n\r\n"));
        assert!(backend.asked().starts_with(&format!("GET {asked} HTTP/1.1\n")), "{target}");
    }
}

#[test]
fn an_error_page_is_requested_with_get() {
    let backend = TestBackend::replying(EMPTY);
    let address = backend.address();
    let server = Server::start(format!(
        "server {{ error_page 403 /page; location / {{ deny all; }}
             location /page {{ proxy_pass http://{address}; }} }}"
    ));
    let reply = server.ask("DELETE / HTTP/1.0\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 403 "), "{reply}");
    assert!(backend.asked().starts_with("GET /page HTTP/1.1\n"));
}

#[test]
fn unnamed_blocks_use_the_backend_of_their_location() {
    let backend = TestBackend::replying(EMPTY);
    let other = TestBackend::replying(EMPTY);
    let (address, other_address) = (backend.address(), other.address());
    let server = Server::start(format!(
        "server {{ location /a {{
             proxy_pass http://{address}/b;
             if ($arg_x) {{ set $y 1; }}
             if ($arg_z) {{ proxy_pass http://{other_address}; }}
             limit_except GET {{ allow all; }}
         }} }}"
    ));
    for (line, asked) in
        [("GET /a/1", "GET /b/1"), ("GET /a/1?x=1", "GET /b/1?x=1"), ("POST /a/1", "POST /b/1")]
    {
        server.ask(&format!("{line} HTTP/1.0\r\n\r\n"));
        assert_eq!(backend.asked().lines().next(), Some(&*format!("{asked} HTTP/1.1")));
    }
    server.ask("GET /a/1?z=1 HTTP/1.0\r\n\r\n");
    assert_eq!(other.asked().lines().next(), Some("GET /a/1?z=1 HTTP/1.1"));
}

#[test]
fn variables_may_name_groups_and_addresses() {
    let backend = TestBackend::replying(EMPTY);
    let (address, port) = (backend.address(), backend.port);
    let server = Server::start(format!(
        "error_log e.log; upstream block {{ server {address}; }}
         server {{
             location / {{ proxy_pass http://$arg_to; }}
             location /fixed {{ proxy_pass http://LocalHost:{port}; }}
         }}"
    ));
    for (to, asked) in [
        (address.clone(), "/?to="),
        ("block".to_owned(), "/?to="),
        ("Block/x".to_owned(), "/x"),
        ("block?x=y".to_owned(), "/?x=y"),
        // A name without variables needs no resolver.
        (format!("localhost:{port}/z"), "/z"),
    ] {
        server.ask(&format!("GET /?to={to} HTTP/1.0\r\n\r\n"));
        let line = backend.asked().lines().next().unwrap().to_owned();
        assert!(line.starts_with(&format!("GET {asked}")), "{to}: {line}");
    }
    for (to, status, message) in [
        ("elsewhere", 502, "no resolver defined to resolve elsewhere"),
        ("", 500, "no host in upstream \"\""),
        ("a:b", 500, "invalid port in upstream \"a:b\""),
    ] {
        let reply = server.ask(&format!("GET /?to={to} HTTP/1.0\r\n\r\n"));
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{to}: {reply}");
        let line = server.log().pop().unwrap();
        assert!(line.starts_with(&format!("{message}, client: ")), "{line}");
    }
}

#[test]
fn a_connection_with_an_incomplete_body_is_not_reused() {
    // Answers every head with its number on the connection.
    let backend = TestBackend::playing(|mut peer| {
        let (mut input, mut count) = (Vec::new(), 0);
        while let Some(more) = peer.take() {
            input.extend(more);
            while let Some(at) = memchr::memmem::find(&input, b"\r\n\r\n") {
                input.drain(..at + 4);
                count += 1;
                peer.send(&format!("HTTP/1.1 200 OK\nX-Nth: {count}\nContent-Length: 0\n\n"));
            }
        }
    });
    let address = backend.address();
    let post = "POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc";
    for (lines, request, nth) in [
        ("", "GET / HTTP/1.0\r\n\r\n", "2"),
        ("", post, "2"),
        ("proxy_pass_request_body off;", post, "1"),
        ("proxy_pass_request_body off; proxy_set_header Content-Length '';", post, "2"),
        // The bytes after such a head are the next request for the server.
        ("proxy_set_header Content-Length '';", post, "1"),
        ("proxy_set_header Content-Length $content_length;", post, "2"),
    ] {
        let server = Server::start(format!(
            "upstream u {{ server {address}; keepalive 4; }}
             server {{ location / {{ proxy_pass http://u; {lines} }} }}"
        ));
        let replies = [(); 2].map(|()| server.ask(request));
        assert_eq!(values(&replies[1], "X-Nth"), [nth], "{lines}");
    }
}

#[test]
fn sizes_may_be_as_large_as_numbers_are() {
    let lines = "proxy_pass http://127.0.0.1:1; proxy_buffers 9223372036854775807 8k;";
    crate::testing::site(&format!("server {{ location / {{ {lines} }} }}"));
}
