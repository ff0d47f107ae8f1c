use std::net::TcpListener;

use testing::Peer;

use super::*;

/// What a responder with this reply is sent, and what comes of it.
fn fetched(reply: &[u8]) -> (String, Result<Vec<u8>, String>) {
    let reply = reply.to_vec();
    let responder = Peer::playing(move |mut connection| {
        let request = connection.until(b"\r\n\r\n")?;
        connection.report(&String::from_utf8(request).expect("text"));
        // The other side may have read enough.
        connection.send_raw(&reply)
    });
    let url = format!("http://{}/status", responder.address);
    let responses = net::run(async {
        let url = OcspResponderUrl::read(url.as_bytes()).expect("a URL");
        url.fetch(&[0xfb, 0xff, 0xfe, 0], &ResolverPolicy::default()).await
    });
    let fetched = responses.expect("a worker").map_err(|failure| failure.to_string());
    (responder.asked(), fetched)
}

#[test]
fn the_request_is_in_the_path() {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\nbody";
    let (request, body) = fetched(reply);
    assert_eq!(body, Ok(b"body".to_vec()));
    let lines: Vec<_> = request.split("\r\n").collect();
    assert_eq!(lines[0], "GET /status/%2B%2F%2F%2BAA%3D%3D HTTP/1.1");
    assert!(lines[1].starts_with("Host: 127.0.0.1:"), "{request}");
}

#[test]
fn a_silent_responder_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let fetched = net::testing::simulate(async {
        let url = OcspResponderUrl::read(url.as_bytes()).expect("a URL");
        url.fetch(b"request", &ResolverPolicy::default()).await
    });
    let (fetched, took_ms) = fetched.expect("a worker");
    assert!(matches!(fetched, Err(ResponderFailure::TimedOut)), "{fetched:?}");
    assert!((FETCH_MAX_MS..FETCH_MAX_MS + 100).contains(&took_ms), "{took_ms}");
}

#[test]
fn other_replies_are_refused() {
    let large = [
        &b"HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\n"[..],
        &[0; LIMITS.body_bytes_max + 1],
    ];
    for reply in [
        &b"HTTP/1.1 404 Not Found\r\nContent-Type: application/ocsp-response\r\n\r\nbody"[..],
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\n",
        b"no HTTP\r\n\r\n",
        b"",
        &large.concat(),
    ] {
        let (_, body) = fetched(reply);
        assert_eq!(body, Err("OCSP responder sent invalid response".into()));
    }
}

#[test]
fn a_name_without_an_address_needs_a_resolver() {
    let fetched = net::run(async {
        let url = OcspResponderUrl::parse(b"http://ocsp.test/").expect("a URL");
        url.fetch(&[0], &ResolverPolicy::default()).await
    });
    let failure = fetched.expect("a worker").expect_err("no response");
    assert_eq!(failure.to_string(), "no resolver defined to resolve ocsp.test");
}

#[test]
fn urls_are_checked() {
    let read = |url: &str| OcspResponderUrl::read(url.as_bytes()).map(|url| url.addresses.len());
    assert_eq!(read("HTTP://127.0.0.1"), Ok(1));
    assert_eq!(read("https://127.0.0.1/"), Err("invalid URL prefix"));
    assert_eq!(read("http://unix:/socket"), Err("no path in the unix domain socket"));
    assert_eq!(read("http:///x"), Err("no host"));
}

#[test]
fn a_reply_may_come_in_chunks_on_an_open_connection() {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\
        Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\nmore";
    assert_eq!(fetched(reply).1, Ok(b"body".to_vec()));
}

#[test]
fn a_certificate_cannot_add_lines_to_the_request() {
    let fetched = net::run(async {
        let url = OcspResponderUrl::parse(b"http://127.0.0.1:1/ HTTP/1.0\r\nA: b").expect("a URL");
        url.fetch(&[0], &ResolverPolicy::default()).await
    });
    let failure = fetched.expect("a worker").expect_err("no response");
    assert_eq!(failure.to_string(), "OCSP responder failed (the request target is invalid)");
}
