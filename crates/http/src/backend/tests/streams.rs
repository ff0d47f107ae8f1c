//! Requests to backends as streams of HTTP/2: many on one connection, both directions at once.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey};

use crate::backend::testing::{TestBackend, TestPeer, text};
use crate::h1::tests::Server;
use crate::h2::tests::Http2Client;

/// The server's end of one connection in a test. Reports its requests to the test.
struct StreamPeer {
    peer: TestPeer,
    endpoint: Http2Endpoint,
    streams: BTreeMap<u32, ServedStream>,
}

struct ServedStream {
    key: StreamKey,
    path: String,
    /// The bytes to be sent, and whether they are the last.
    unsent: Vec<u8>,
    ends: bool,
}

/// The bytes received on a stream.
enum Came {
    Head(StreamKey, String),
    Data(StreamKey, Vec<u8>),
    /// The fields that end a request, as text.
    Trailers(StreamKey, String),
    End(StreamKey),
    Reset(StreamKey),
}

impl StreamPeer {
    fn new(peer: TestPeer) -> Self {
        Self::with(peer, Http2Config { max_concurrent_streams: 200, ..Http2Config::default() })
    }

    fn with(peer: TestPeer, config: Http2Config) -> Self {
        let endpoint = Http2Endpoint::new(Http2Role::Server, config);
        Self { peer, endpoint, streams: BTreeMap::new() }
    }

    /// Sends as much as the windows allow.
    fn flush(&mut self) {
        for stream in self.streams.values_mut() {
            let count = stream.unsent.len().min(self.endpoint.sendable(stream.key));
            let ends = stream.ends && count == stream.unsent.len();
            if count > 0 || ends {
                let piece: Vec<u8> = stream.unsent.drain(..count).collect();
                self.endpoint.send_data(stream.key, &piece, ends, usize::MAX);
                stream.ends &= !ends;
            }
        }
        let output = self.endpoint.output().to_vec();
        self.endpoint.advance_output(output.len());
        self.peer.send_raw(output);
    }

    /// The next event; `None` once the connection is closed.
    fn next(&mut self) -> Option<Vec<Came>> {
        self.flush();
        let input = self.peer.take()?;
        let (mut came, mut at) = (Vec::new(), 0);
        while at < input.len() {
            let received = self.endpoint.receive(&input[at..]).unwrap();
            match received.event {
                Some(Http2Event::Head { stream, end_stream }) => {
                    let path = self.endpoint.fields().get(b":path").unwrap_or_default();
                    let path = String::from_utf8_lossy(path).into_owned();
                    let (key, unsent) = (stream, Vec::new());
                    let served = ServedStream { key, path: path.clone(), unsent, ends: false };
                    self.streams.insert(stream.id, served);
                    came.push(Came::Head(stream, path));
                    came.extend(end_stream.then_some(Came::End(stream)));
                }
                Some(Http2Event::Data { stream, range, end_stream }) => {
                    let data = &input[at..][range];
                    self.endpoint.raise_window(stream, 1 << 20);
                    came.push(Came::Data(stream, data.to_vec()));
                    came.extend(end_stream.then_some(Came::End(stream)));
                }
                Some(Http2Event::Trailers { stream }) => {
                    let lines = self.endpoint.fields().iter().map(|(name, value)| {
                        format!("{}={};", name.escape_ascii(), value.escape_ascii())
                    });
                    came.push(Came::Trailers(stream, lines.collect()));
                }
                Some(Http2Event::Reset { stream, code }) => {
                    assert_eq!(code, Http2Code::CANCEL);
                    came.push(Came::Reset(stream));
                }
                _ => {}
            }
            at += received.consumed;
        }
        Some(came)
    }

    /// Sends GOAWAY with NO_ERROR, and goes on.
    fn goes_away(&mut self, last_stream: u32) {
        self.flush();
        let [a, b, c, d] = last_stream.to_be_bytes();
        self.peer.send_raw([0, 0, 8, 7, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0]);
    }

    fn head(&mut self, stream: StreamKey, end: bool) {
        let mut writer = self.endpoint.begin_fields(stream).unwrap();
        writer.status(200);
        writer.field(b"x-stream", stream.id.to_string().as_bytes());
        writer.finish(end);
    }

    fn data(&mut self, stream: StreamKey, bytes: &[u8], ends: bool) {
        let served = self.streams.get_mut(&stream.id).unwrap();
        served.unsent.extend_from_slice(bytes);
        served.ends |= ends;
    }

    /// Answers each request at once, and echoes its body as it arrives, and its trailers.
    fn echo(mut self) {
        while let Some(came) = self.next() {
            for came in came {
                match came {
                    Came::Head(stream, _) => self.head(stream, false),
                    Came::Data(stream, data) => self.data(stream, &data, false),
                    Came::Trailers(stream, text) => self.data(stream, text.as_bytes(), true),
                    Came::End(stream) => self.data(stream, b"", true),
                    Came::Reset(stream) => {
                        let canceled = self.streams.remove(&stream.id).unwrap();
                        self.peer.report(&format!("canceled {}", canceled.path));
                    }
                }
            }
        }
    }
}

const LINES: &str = "proxy_http_version 2; proxy_request_buffering off; proxy_buffering off;";

fn through(backend: &TestBackend, lines: &str) -> Server {
    Server::start(format!(
        "error_log e.log info; upstream b {{ server {}; keepalive 4; }}
         server {{ location / {{ proxy_pass http://b; {lines} }} }}",
        backend.address()
    ))
}

#[test]
fn both_bodies_are_sent_at_once() {
    let backend = TestBackend::playing(|peer| StreamPeer::new(peer).echo());
    let server = through(&backend, LINES);
    let mut client = server.connect_tcp();
    client.head("POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n");
    client.send("3\r\nabc\r\n");
    client.expect_reply_ending("\r\n\r\n3\r\nabc\r\n");
    for piece in ["d", "ef"] {
        let chunk = format!("{}\r\n{piece}\r\n", piece.len());
        client.send(&chunk);
        client.expect_raw(&chunk);
    }
    client.send("0\r\n\r\n");
    client.expect_raw("0\r\n\r\n");
}

/// Of a body that is streamed, in memory, in a file, or empty.
#[test]
fn fields_after_a_body_are_passed_on() {
    let backend = TestBackend::playing(|peer| StreamPeer::new(peer).echo());
    let server = Server::start(format!(
        "http2 on; client_body_buffer_size 16; proxy_http_version 2; proxy_pass_trailers on;
         upstream b {{ server {}; keepalive 4; }}
         server {{
             location /read {{ proxy_pass http://b; }}
             location /streamed {{ proxy_pass http://b; proxy_request_buffering off; }}
             location /without {{ proxy_pass http://b; proxy_pass_trailers off; }}
             location /grpc {{ grpc_pass b; }}
         }}",
        backend.address()
    ));
    let mut client = Http2Client::connect(&server);
    for body in ["", "abc", &"long".repeat(10)] {
        for (path, passed) in
            [("/read", true), ("/streamed", true), ("/without", false), ("/grpc", true)]
        {
            let stream = client.ask(path, &[], false);
            client.endpoint.send_data(stream, body.as_bytes(), false, usize::MAX);
            let mut trailers = client.endpoint.begin_fields(stream).unwrap();
            trailers.field(b"x-sum", b"1 2");
            trailers.field(b"cookie", b"a=b");
            trailers.finish(true);
            let expected = format!("{body}{}", if passed { "x-sum=1 2;" } else { "" });
            assert_eq!(client.answer(stream.id), ("200", expected), "{path}");
        }
    }
}

#[test]
fn a_hundred_requests_at_once_share_one_connection() {
    let backend = TestBackend::playing(|peer| {
        peer.report("connected");
        StreamPeer::new(peer).echo();
    });
    let server = through(&backend, LINES);
    let mut clients: Vec<_> = (0..100).map(|_| server.connect_tcp()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.head(&format!("POST /{number} HTTP/1.1\nHost: h\nContent-Length: 6\n"));
        client.send("abc");
        client.expect_reply_ending("abc\r\n");
    }
    for client in &mut clients {
        client.send("def");
        client.expect_raw("3\r\ndef\r\n0\r\n\r\n");
    }
    assert_eq!(backend.asked(), "connected");
    backend.expect_unasked();
}

/// The server's queue of connections is full for a second: SYN packets are lost.
#[test]
fn requests_wait_for_the_connection_that_another_opens() {
    const QUEUE: usize = 129;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let before = [(); QUEUE].map(|()| TcpStream::connect(address).unwrap());
    let server = Server::start(format!(
        "upstream b {{ server {address}; keepalive 4; }}
         server {{ location / {{ proxy_pass http://b; proxy_http_version 2; }} }}"
    ));
    let mut clients: Vec<_> = (0..120).map(|_| server.connect_tcp()).collect();
    for client in &mut clients {
        client.head("POST / HTTP/1.1\nHost: h\nContent-Length: 3\n");
        client.send("abc");
    }
    server.advance(1);
    let peer = TestBackend::at(listener, |peer| StreamPeer::new(peer).echo());
    for client in &mut clients {
        client.expect_reply_ending("3\r\nabc\r\n0\r\n\r\n");
    }
    // The first of them has 100 streams until it has the server's settings.
    assert_eq!(peer.connections(), before.len() + 2);
}

#[test]
fn each_request_opens_a_connection_after_one_has_failed() {
    let server = Server::start(
        "error_log e.log info; upstream b { server 127.0.0.1:1; keepalive 4; }
         server { location / { proxy_pass http://b; proxy_http_version 2; } }"
            .to_owned(),
    );
    for path in ["/1", "/2"] {
        assert!(ask(&server, path).starts_with("HTTP/1.1 502 "));
    }
    assert_eq!(server.log().len(), 2);
}

/// Its response has the length of a body that is not sent.
#[test]
fn a_head_request_has_a_length_and_no_body() {
    let backend = TestBackend::playing(|peer| {
        let mut peer = StreamPeer::new(peer);
        while let Some(came) = peer.next() {
            for came in came {
                let Came::Head(stream, _) = came else { continue };
                let mut writer = peer.endpoint.begin_fields(stream).unwrap();
                writer.status(200);
                writer.field(b"content-length", b"5");
                writer.finish(true);
            }
        }
    });
    let server = through(&backend, "proxy_http_version 2;");
    let mut client = server.connect_tcp();
    client.head("HEAD / HTTP/1.1\nHost: h\n");
    client.expect_reply_ending("Content-Length: 5\r\nConnection: keep-alive\r\n\r\n");
}

#[test]
fn a_client_that_leaves_cancels_its_stream_alone() {
    let backend = TestBackend::playing(|peer| StreamPeer::new(peer).echo());
    let server = through(&backend, LINES);
    let [mut stays, mut leaves] = [server.connect_tcp(), server.connect_tcp()];
    for (client, path) in [(&mut stays, "/stays"), (&mut leaves, "/leaves")] {
        client.head(&format!("POST {path} HTTP/1.1\nHost: h\nContent-Length: 6\n"));
        client.send("abc");
        client.expect_reply_ending("abc\r\n");
    }
    drop(leaves);
    assert_eq!(backend.asked(), "canceled /leaves");
    stays.send("def");
    stays.expect_raw("3\r\ndef\r\n0\r\n\r\n");
}

#[test]
fn an_unprocessed_request_is_sent_again_with_any_method() {
    let backend = TestBackend::playing(|peer| {
        let mut peer = StreamPeer::new(peer);
        let mut served = 0;
        while let Some(came) = peer.next() {
            for came in came {
                match came {
                    Came::Head(_, path) if served == 1 => {
                        peer.peer.report(&format!("refused {path}"));
                        // GOAWAY: the first stream was the last one processed.
                        peer.flush();
                        peer.peer.send_raw(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0");
                        return;
                    }
                    Came::Head(stream, path) => {
                        peer.peer.report(&format!("served {path}"));
                        peer.head(stream, false);
                    }
                    Came::End(stream) => {
                        served += 1;
                        peer.data(stream, b"", true);
                    }
                    Came::Data(..) | Came::Trailers(..) | Came::Reset(_) => {}
                }
            }
        }
    });
    let server = through(&backend, "proxy_http_version 2;");
    for path in ["/1", "/2"] {
        let request = format!("POST {path} HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
        let reply = server.ask(&request);
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    }
    let told: Vec<String> = (0..3).map(|_| backend.asked()).collect();
    assert_eq!(told, ["served /1", "refused /2", "served /2"]);
    assert!(!has_failed(&server));
}

/// How a test's server refuses requests that it has not processed.
#[derive(Clone, Copy, PartialEq)]
enum Refusal {
    /// GOAWAY with NO_ERROR. The connection stays open.
    GoAway,
    /// REFUSED_STREAM.
    Reset,
    /// The connection is closed without a byte.
    Silence,
}

/// A server that refuses its second request, or with [`Refusal::Silence`] its first connection. It
/// echoes the bodies of the others.
fn refusing(refusal: Refusal) -> TestBackend {
    let count = AtomicUsize::new(0);
    let is_first = AtomicBool::new(true);
    TestBackend::playing(move |peer| {
        if refusal == Refusal::Silence && is_first.swap(false, SeqCst) {
            return peer.report("closed");
        }
        let mut peer = StreamPeer::new(peer);
        while let Some(came) = peer.next() {
            for came in came {
                match came {
                    Came::Head(stream, path) if count.fetch_add(1, SeqCst) == 1 => {
                        peer.peer.report(&format!("refused {path}"));
                        peer.streams.remove(&stream.id);
                        match refusal {
                            Refusal::GoAway => peer.goes_away(stream.id - 2),
                            _ => peer.endpoint.reset(stream, Http2Code::REFUSED_STREAM),
                        }
                    }
                    Came::Head(stream, path) => {
                        peer.peer.report(&format!("served {path}"));
                        peer.head(stream, false);
                    }
                    Came::Data(stream, data) if peer.streams.contains_key(&stream.id) => {
                        peer.data(stream, &data, false);
                    }
                    Came::End(stream) if peer.streams.contains_key(&stream.id) => {
                        peer.data(stream, b"", true);
                    }
                    Came::Data(..) | Came::Trailers(..) | Came::End(_) | Came::Reset(_) => {}
                }
            }
        }
    })
}

fn ask(server: &Server, path: &str) -> String {
    server.ask(&format!("POST {path} HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"))
}

/// Whether the log says that a server has failed.
fn has_failed(server: &Server) -> bool {
    server.log().iter().any(|line| line.contains("temporarily disabled"))
}

/// As in a rolling restart: every server has gone away, and each accepts new connections.
#[test]
fn servers_that_have_gone_away_are_asked_again() {
    let backends = [refusing(Refusal::GoAway), refusing(Refusal::GoAway)];
    let [one, two] = [0, 1].map(|at: usize| backends[at].address());
    let server = Server::start(format!(
        "error_log e.log info; upstream b {{ server {one}; server {two}; keepalive 4; }}
         server {{ location / {{ proxy_pass http://b; proxy_http_version 2; }} }}"
    ));
    for path in ["/1", "/2", "/3", "/4", "/5"] {
        let reply = ask(&server, path);
        assert!(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with("abc"), "{reply}");
    }
    let told = [(); 3].map(|()| backends[0].asked());
    assert_eq!(told, ["served /1", "refused /3", "served /3"]);
    let told = [(); 3].map(|()| backends[1].asked());
    assert_eq!(told, ["served /2", "refused /3", "served /4"]);
    assert!(!has_failed(&server), "no server has failed");
}

#[test]
fn a_refused_stream_is_opened_again_on_its_connection() {
    let backend = refusing(Refusal::Reset);
    let server = through(&backend, "proxy_http_version 2;");
    for path in ["/1", "/2"] {
        assert!(ask(&server, path).ends_with("abc"));
    }
    let told = [(); 3].map(|()| backend.asked());
    assert_eq!(told, ["served /1", "refused /2", "served /2"]);
    assert_eq!((backend.connections(), has_failed(&server)), (1, false));
}

#[test]
fn the_first_piece_of_an_arriving_body_is_sent_again() {
    let backend = refusing(Refusal::Reset);
    let server = through(&backend, LINES);
    assert!(ask(&server, "/1").ends_with("abc"));
    let mut client = server.connect_tcp();
    client.head("POST /2 HTTP/1.1\nHost: h\nContent-Length: 6\n");
    client.send("abc");
    client.expect_reply_ending("abc\r\n");
    client.send("def");
    client.expect_raw("3\r\ndef\r\n0\r\n\r\n");
    let told = [(); 3].map(|()| backend.asked());
    assert_eq!(told, ["served /1", "refused /2", "served /2"]);
}

/// It has sent no settings, so it cannot have processed the request; but it is not well.
#[test]
fn a_server_that_closes_new_connections_in_silence_has_failed() {
    let (silent, other) = (refusing(Refusal::Silence), refusing(Refusal::Reset));
    let server = Server::start(format!(
        "error_log e.log info; upstream b {{ server {}; server {}; keepalive 4; }}
         server {{ location / {{ proxy_pass http://b; proxy_http_version 2; }} }}",
        silent.address(),
        other.address()
    ));
    assert!(ask(&server, "/1").ends_with("abc"));
    assert_eq!([silent.asked(), other.asked()], ["closed", "served /1"]);
    assert!(has_failed(&server));
}

/// The words are nginx's, as for HTTP/1.
#[test]
fn a_connection_that_ends_early_is_logged_as_closed() {
    let backend = TestBackend::playing(|peer| {
        let mut peer = StreamPeer::new(peer);
        while let Some(came) = peer.next() {
            for came in came {
                if let Came::Head(stream, path) = came {
                    if path == "/cut" {
                        peer.head(stream, false);
                        peer.data(stream, b"abc", false);
                        peer.flush();
                    }
                    peer.peer.end();
                }
            }
        }
    });
    let server = through(&backend, "proxy_http_version 2;");
    let reply = server.ask("GET /head HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
    let reply = server.ask("GET /cut HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(reply.ends_with("abc\r\n"), "no last chunk: {reply}");
    for action in ["reading response header from upstream", "reading upstream"] {
        let words = format!("upstream prematurely closed connection while {action}, ");
        assert!(server.log().iter().any(|line| line.contains(&words)), "{:?}", server.log());
    }
}

#[test]
fn a_request_that_needs_another_version_is_told_so() {
    let backend = TestBackend::playing(|peer| {
        let mut peer = StreamPeer::new(peer);
        while let Some(came) = peer.next() {
            for came in came {
                if let Came::Head(stream, _) = came {
                    peer.streams.remove(&stream.id);
                    peer.endpoint.reset(stream, Http2Code::HTTP_1_1_REQUIRED);
                }
            }
        }
    });
    let server = through(&backend, "proxy_http_version 2;");
    let reply = server.ask("GET / HTTP/1.0\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
    let is_told = |line: &String| line.contains("upstream requires HTTP/1.1 for this request");
    assert!(server.log().iter().any(is_told));
}

/// SETTINGS_MAX_HEADER_LIST_SIZE is advice: the server decides what becomes of a larger head.
#[test]
fn a_head_that_is_larger_than_advised_is_sent() {
    let backend = TestBackend::playing(|peer| {
        let config = Http2Config { max_header_list_size: Some(0), ..Http2Config::default() };
        StreamPeer::with(peer, config).echo();
    });
    let server = through(&backend, "proxy_http_version 2;");
    for path in ["/1", "/2"] {
        assert!(ask(&server, path).ends_with("abc"));
    }
}

#[test]
fn a_long_body_arrives_whole_in_any_way_of_reading() {
    let long = text(300_000);
    let backend = TestBackend::playing(|peer| StreamPeer::new(peer).echo());
    for lines in ["", "proxy_buffering off;", "proxy_request_buffering off;"] {
        let server = through(&backend, &format!("proxy_http_version 2; {lines}"));
        let mut client = server.connect_tcp();
        let head = format!("POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n", long.len());
        let mut twin = client.twin();
        let sent = long.clone();
        let sender = std::thread::spawn(move || {
            twin.0.write_all(head.as_bytes()).unwrap();
            twin.0.write_all(sent.as_bytes()).unwrap();
        });
        let reply = client.rest();
        sender.join().unwrap();
        assert!(reply.ends_with(&long), "{} bytes with {lines}", reply.len());
    }
}

#[test]
fn a_client_that_stops_sending_beside_the_reply_times_out() {
    let backend = TestBackend::playing(|peer| StreamPeer::new(peer).echo());
    let server = through(&backend, &format!("{LINES} client_body_timeout 2s;"));
    let mut client = server.connect_tcp();
    client.head("POST /slow HTTP/1.1\nHost: h\nContent-Length: 6\n");
    client.send("abc");
    client.expect_reply_ending("abc\r\n");
    server.advance(1900);
    client.expect_nothing();
    server.advance(200);
    client.expect_end();
    assert_eq!(backend.asked(), "canceled /slow");
}
