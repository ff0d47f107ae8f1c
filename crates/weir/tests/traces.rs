//! Spans reach a collector, over HTTP and over gRPC, and a collector that is dead delays nobody.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use testing::{
    Peer, PeerConnection, ReceivedSpan, ReceivedSpans, Server, eventually, free_address,
};

/// Bytes of the head of a frame of HTTP/2.
const FRAME_HEAD: usize = 9;

/// Accepts spans over HTTP, and reports the head and the message in hexadecimal digits.
fn http_collector(status: &'static str) -> Peer {
    Peer::playing(move |mut peer| while take_post(&mut peer, status).is_some() {})
}

fn take_post(peer: &mut PeerConnection, status: &str) -> Option<()> {
    let head = String::from_utf8(peer.until(b"\r\n\r\n")?).unwrap().replace("\r\n", "\n");
    let length = testing::field(&head, "content-length").unwrap().parse().unwrap();
    let message = peer.exactly(length)?;
    peer.report(&format!("{head}{}", hex(&message)));
    peer.send(&format!("HTTP/1.1 {status}\nContent-Length: 0\n\n"));
    Some(())
}

/// Accepts spans over gRPC, and reports messages in hexadecimal digits.
fn grpc_collector() -> Peer {
    Peer::playing(|mut peer| {
        peer.until(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
        send_frame(&mut peer, SETTINGS, 0, 0, b"")?;
        let mut message = Vec::new();
        while take_frame(&mut peer, &mut message).is_some() {}
        Some(())
    })
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn take_frame(peer: &mut PeerConnection, message: &mut Vec<u8>) -> Option<()> {
    let head = peer.exactly(FRAME_HEAD)?;
    let payload = peer.exactly(usize::from(head[1]) << 8 | usize::from(head[2]))?;
    let (kind, flags, stream) = (head[3], head[4], head[8]);
    if kind == DATA {
        message.extend(payload);
    }
    if kind == SETTINGS && flags == 0 {
        send_frame(peer, SETTINGS, 1, 0, b"")?;
    }
    if kind == DATA && flags & END_STREAM != 0 {
        assert_eq!(message[0], 0, "not compressed");
        peer.report(&hex(&message[5..]));
        message.clear();
        // `:status 200`; an empty message; `grpc-status: 0`
        send_frame(peer, HEADERS, END_HEADERS, stream, b"\x88")?;
        send_frame(peer, DATA, 0, stream, &[0; 5])?;
        let trailers = b"\x00\x0bgrpc-status\x010";
        send_frame(peer, HEADERS, END_HEADERS | END_STREAM, stream, trailers)?;
    }
    Some(())
}

fn send_frame(
    peer: &mut PeerConnection,
    kind: u8,
    flags: u8,
    stream: u8,
    payload: &[u8],
) -> Option<()> {
    let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    peer.send_raw([&head, payload].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn received(digits: &str) -> ReceivedSpans {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    ReceivedSpans::decode(&(0..digits.len()).step_by(2).map(byte).collect::<Vec<_>>())
}

/// Spans until there are `count`.
fn spans(collector: &Peer, count: usize) -> Vec<ReceivedSpan> {
    let mut spans = Vec::new();
    while spans.len() < count {
        let asked = collector.asked();
        spans.extend(received(asked.rsplit('\n').next().unwrap()).spans);
    }
    assert_eq!(spans.len(), count);
    spans
}

fn site(endpoint: &str, lines: &str) -> String {
    format!(
        "otel_exporter {{ endpoint {endpoint}; interval 10ms; header X-Token secret; {lines} }}
         otel_trace on;
         server {{ listen ADDRESS; server_name s.test; location /ok {{ return 200 OK; }} }}"
    )
}

#[test]
fn spans_are_sent_over_http() {
    let collector = http_collector("200 OK");
    let endpoint = format!("http://{}/v1/traces", collector.address);
    let server = Server::start("", &site(&endpoint, ""));
    assert_eq!(server.get("/ok"), "OK");
    let asked = collector.asked();
    let (head, message) = asked.rsplit_once('\n').unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\n"), "{head}");
    assert_eq!(testing::field(head, "content-type"), Some("application/x-protobuf"));
    assert_eq!(testing::field(head, "x-token"), Some("secret"));
    assert_eq!(testing::field(head, "host"), Some(&*collector.address.to_string()));
    let received = received(message);
    assert_eq!(received.resource["service.name"], "unknown_service:nginx");
    let span = &received.spans[0];
    assert_eq!((&*span.name, span.attribute("net.host.name")), ("/ok", "s.test"));
    assert_eq!(span.attribute("net.host.port"), server.address.port().to_string());
    assert_eq!(span.attribute("http.response_content_length"), "2");
    // Kept connections serve further batches.
    for _ in 0..3 {
        server.get("/ok");
        spans(&collector, 1);
    }
    assert_eq!(collector.connections(), 1);
}

#[test]
fn spans_are_sent_over_grpc() {
    let collector = grpc_collector();
    let server = Server::start("", &site(&collector.address.to_string(), ""));
    for _ in 0..3 {
        server.get("/ok");
        assert_eq!(spans(&collector, 1)[0].name, "/ok");
    }
    assert_eq!(collector.connections(), 1);
}

#[test]
fn no_span_is_lost_when_the_server_quits_or_reloads() {
    for signal in ["QUIT", "TERM"] {
        let collector = http_collector("200 OK");
        let endpoint = format!("http://{}/v1/traces", collector.address);
        let mut http = site(&endpoint, "").replace("10ms", "1h");
        let server = Server::start("", &http);
        server.get("/ok");
        http = http.replace("otel_trace on", "otel_service_name new; otel_trace on");
        server.configure("", &http);
        server.reload();
        spans(&collector, 1);
        server.get("/ok");
        let stopped = server.stop(signal);
        assert!(stopped.status.success(), "{}", stopped.log);
        let asked = collector.asked();
        assert_eq!(received(asked.rsplit('\n').next().unwrap()).resource["service.name"], "new");
    }
}

#[test]
fn a_dead_collector_delays_nobody() {
    let endpoint = format!("http://{}/v1/traces", free_address());
    let server = Server::start("", &site(&endpoint, "batch_size 2; batch_count 1;"));
    for _ in 0..20 {
        assert_eq!(server.get("/ok"), "OK");
    }
    server.await_log("otel cannot export to ", 1);
    server.await_log("otel dropped ", 1);
    let begun = Instant::now();
    assert!(server.stop("QUIT").status.success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_refusing_collector_is_not_asked_again_for_a_batch() {
    let collector = http_collector("400 Bad Request");
    let endpoint = format!("http://{}/v1/traces", collector.address);
    let server = Server::start("", &site(&endpoint, ""));
    server.get("/ok");
    spans(&collector, 1);
    server.await_log("status 400; 1 spans are lost", 1);
    collector.expect_unasked();
}

#[test]
fn a_collector_that_comes_back_gets_the_batch() {
    let address = free_address();
    let server = Server::start("", &site(&format!("http://{address}/v1/traces"), ""));
    server.get("/ok");
    server.await_log("otel cannot export to ", 1);
    let listener = eventually("an address", || std::net::TcpListener::bind(address).ok());
    let collector = Peer::at(listener, |mut peer| take_post(&mut peer, "200 OK"));
    assert_eq!(spans(&collector, 1)[0].name, "/ok");
}

#[test]
fn attempts_at_backends_have_spans_of_their_own() {
    let collector = http_collector("200 OK");
    let backend = Peer::answering(|request| {
        let parent = testing::field(request, "traceparent").unwrap_or_default();
        format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{parent}", parent.len())
    });
    let (endpoint, closed) = (format!("http://{}/v1/traces", collector.address), free_address());
    let http = format!(
        "otel_exporter {{ endpoint {endpoint}; interval 10ms; }} otel_trace on;
         otel_child_spans on; otel_trace_context propagate;
         upstream u {{ server {closed} max_fails=0; server {} backup; }}
         server {{ listen ADDRESS; location / {{ proxy_pass http://u; }} }}",
        backend.address
    );
    let server = Server::start("", &http);
    let mut stream = server.connect();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";
    write!(stream, "GET /a HTTP/1.0\r\nTraceparent: {parent}\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let spans = spans(&collector, 3);
    let [request, failed, served] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(testing::body(&reply), format!("00-{}-{}-01", &parent[3..35], request.span_id));
    assert_eq!((&*request.parent, request.kind), (&parent[36..52], 2));
    for attempt in [failed, served] {
        assert_eq!((&*attempt.name, attempt.kind), ("upstream", 3));
        assert_eq!((&attempt.parent, &attempt.trace_id), (&request.span_id, &request.trace_id));
        assert!(attempt.start_ns >= request.start_ns && attempt.end_ns <= request.end_ns);
    }
    assert_eq!((failed.is_failure, failed.attribute("http.status_code")), (true, "502"));
    assert_eq!((served.is_failure, served.attribute("http.status_code")), (false, "200"));
    let port = backend.address.port().to_string();
    assert_eq!(served.attribute("net.sock.peer.port"), port);
}
