//! Tests of the driver over a socket pair, with `wire::http2` at the client's end.

mod draining;
mod timing;
mod turns;
mod waits;

use net::LentFuture;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use wire::http2::frame::{self, END_HEADERS, END_STREAM, FrameHead, HEADERS};
use wire::http2::limits::Http2Limit;
use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey};

use super::totals;
use crate::h1::tests::{Client, Server, filters};
use crate::testing::{TestSite, handle};

const SITE: &str = "error_log e.log info; http2 on; keepalive_timeout 10s;
     client_header_timeout 3s; send_timeout 4s; large_client_header_buffers 2 1k;
     server {
         server_name one;
         location / { return 200 \"$http2 $server_protocol $request $http_x [$http_cookie]\"; }
         location /long { }
         location /deny { deny all; }
     }
     server { server_name two; http2 off; }";

/// The reply received on a stream.
#[derive(Debug, Default)]
struct Answer {
    status: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    is_complete: bool,
    reset: Option<Http2Code>,
}

pub(crate) struct Http2Client {
    socket: Client,
    pub(crate) endpoint: Http2Endpoint,
    answers: BTreeMap<u32, Answer>,
    went_away: Option<Http2Code>,
    pongs: usize,
    knows_settings: bool,
    is_closed: bool,
    /// Whether windows are opened when data is received.
    reads: bool,
}

impl Http2Client {
    /// A client after the exchange of settings.
    pub(crate) fn connect(server: &Server) -> Self {
        let mut client = Self::begin(server);
        client.until(|client| client.knows_settings);
        client
    }

    fn begin(server: &Server) -> Self {
        Self {
            knows_settings: false,
            socket: server.connect(),
            endpoint: Http2Endpoint::new(Http2Role::Client, Http2Config::default()),
            answers: BTreeMap::new(),
            went_away: None,
            pongs: 0,
            is_closed: false,
            reads: true,
        }
    }

    pub(crate) fn ask(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        end_stream: bool,
    ) -> StreamKey {
        let stream = self.endpoint.open().unwrap();
        let method = if end_stream { "GET" } else { "POST" };
        let head = [(":method", method), (":scheme", "http"), (":path", path)];
        let named = fields.iter().any(|field| field.0 == ":authority");
        let host = (!named).then_some((":authority", "one"));
        let mut writer = self.endpoint.begin_fields(stream).unwrap();
        for (name, value) in head.iter().chain(&host).chain(fields) {
            writer.field(name.as_bytes(), value.as_bytes());
        }
        writer.finish(end_stream);
        self.answers.insert(stream.id, Answer::default());
        stream
    }

    fn get(&mut self, path: &str) -> u32 {
        self.ask(path, &[], true).id
    }

    fn flush(&mut self) {
        let output = self.endpoint.output().to_vec();
        self.endpoint.advance_output(output.len());
        self.send(&output);
    }

    /// Sends bytes. Ignores errors, because the server may have closed the connection.
    fn send(&mut self, bytes: &[u8]) {
        self.is_closed |= self.socket.0.write_all(bytes).is_err();
    }

    /// Reads until the condition holds or the connection is over.
    fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        let mut buffer = vec![0; 65_536];
        while !holds(self) && !self.is_closed {
            self.flush();
            let count = self.socket.0.read(&mut buffer).unwrap_or(0);
            self.is_closed |= count == 0;
            let mut at = 0;
            while let Ok(received) = self.endpoint.receive(&buffer[at..count]) {
                let input = &buffer[at..count];
                at += received.consumed;
                let Some(event) = received.event else { break };
                self.take(event, input);
            }
        }
        assert!(holds(self), "{:?}", self.answers);
    }

    fn take(&mut self, event: Http2Event, input: &[u8]) {
        let Self { answers, endpoint, .. } = self;
        match event {
            Http2Event::Head { stream, end_stream } => {
                let answer = answers.get_mut(&stream.id).unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let fields = endpoint.fields().iter().map(|(n, v)| (text(n), text(v)));
                answer.fields = fields.collect();
                answer.status = answer.fields[0].1.clone();
                answer.is_complete = end_stream;
            }
            Http2Event::Data { stream, range, end_stream } => {
                let answer = answers.get_mut(&stream.id).unwrap();
                answer.body.extend_from_slice(&input[range]);
                answer.is_complete = end_stream;
                if self.reads {
                    endpoint.raise_window(stream, 65_536);
                }
            }
            Http2Event::Trailers { stream } => {
                let answer = answers.get_mut(&stream.id).unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                answer.fields.extend(endpoint.fields().iter().map(|(n, v)| (text(n), text(v))));
                answer.is_complete = true;
            }
            Http2Event::Reset { stream, code } => {
                answers.get_mut(&stream.id).unwrap().reset = Some(code);
            }
            Http2Event::GoAway { code, .. } => self.went_away = Some(code),
            Http2Event::Pong { .. } => self.pongs += 1,
            Http2Event::SettingsAcked => self.knows_settings = true,
            _ => {}
        }
    }

    /// Waits for a complete reply. Returns its status and body.
    pub(crate) fn answer(&mut self, stream: u32) -> (&str, String) {
        self.until(|client| client.answers[&stream].is_complete);
        let answer = &self.answers[&stream];
        (&answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Waits for a stream to be reset.
    fn reset(&mut self, stream: u32) -> Http2Code {
        self.until(|client| client.answers[&stream].reset.is_some());
        self.answers[&stream].reset.unwrap()
    }

    /// Reads to the end of a connection whose streams the client's machine does not know. Returns
    /// the code of GOAWAY.
    fn last_words(&mut self) -> Option<Http2Code> {
        let mut bytes = Vec::new();
        let _ = self.socket.0.read_to_end(&mut bytes);
        let (mut rest, mut code) = (&bytes[..], None);
        while let Some((head, after)) = rest.split_first_chunk() {
            let head = FrameHead::parse(head);
            let (payload, after) = after.split_at(head.length as usize);
            if head.kind == frame::GOAWAY {
                code = Some(Http2Code(u32::from_be_bytes(payload[4..8].try_into().unwrap())));
            }
            rest = after;
        }
        code
    }

    /// Waits for the end of the connection. Returns the code of GOAWAY.
    fn end(&mut self) -> Option<Http2Code> {
        self.until(|client| client.is_closed);
        self.went_away
    }
}

fn with_files(site: &TestSite) {
    site.file("long", vec![b'x'; 300_000]);
}

fn server() -> Server {
    Server::with(SITE, |_| {}, with_files)
}

#[test]
fn many_requests_share_a_connection() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    let streams: Vec<u32> = (0..100).map(|n| client.get(&format!("/{n}"))).collect();
    let long = client.get("/long");
    for (n, stream) in streams.into_iter().enumerate() {
        let body = format!("h2c HTTP/2.0 GET /{n} HTTP/2.0  []");
        assert_eq!(client.answer(stream), ("200", body));
        let (status, bytes) = server.logged();
        assert!(status == 200 && bytes > 50, "{status} {bytes}");
    }
    let (status, body) = client.answer(long);
    assert_eq!((status, body.len()), ("200", 300_000));
    let stream = client.ask("/x", &[("x", "1"), ("cookie", "a=b"), ("cookie", "c=d")], true).id;
    assert_eq!(client.answer(stream).1, "h2c HTTP/2.0 GET /x HTTP/2.0 1 [a=b; c=d]");
    assert_eq!(client.answers[&stream].fields[1].0, "server");
}

#[test]
fn a_wrong_head_is_answered_and_reset() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    let refused: [(&[(&str, &str)], &str); 7] = [
        (&[("connection", "close")], "sent \"Connection\" header"),
        (&[(":authority", "")], "sent neither \":authority\" nor \"Host\" header"),
        (&[("te", "gzip")], "sent invalid \"TE\" header"),
        (&[("te", "trailers"), ("te", "trailers")], "sent invalid \"TE\" header"),
        (&[("content-length", "3")], "prematurely closed stream"),
        (
            &[(":authority", "one"), ("host", "other")],
            "sent \":authority\" and \"Host\" headers with different values",
        ),
        (&[("x", "a\nb")], "sent header with invalid value"),
    ];
    for (fields, what) in refused {
        let stream = client.ask("/", fields, true).id;
        assert_eq!(client.answer(stream).0, "400", "{what}");
        assert_eq!(client.reset(stream), Http2Code::PROTOCOL_ERROR, "{what}");
        let log = server.log();
        assert!(log.last().unwrap().starts_with(&format!("client {what}")), "{log:?}");
    }
    let stream = client.get("/..");
    assert_eq!(client.answer(stream).0, "400");
    let stream = client.ask("/", &[(":authority", "two")], true).id;
    assert_eq!(client.answer(stream).0, "421");
    let stream = client.get("/deny");
    assert_eq!(client.answer(stream).0, "403");
}

/// HTTP/1 is served on the same socket, even if its first bytes are those of the preface.
#[test]
fn clients_of_http_1_are_served() {
    let server = server();
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: one\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK"),
        ("PRI * HTTP/2.0\r\n\r\nxxxxxxxx", "HTTP/1.1 400 Bad Request"),
        ("P / HTTP/1.1\r\nHost: one\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK"),
    ] {
        let reply = server.ask(request);
        assert!(reply.starts_with(status), "{request:?} {reply:?}");
    }
}

#[test]
fn a_body_filter_sets_variables_waits_and_inserts_subrequests() {
    let server = Server::with(filters::SITE, filters::shout, |_| {});
    let mut client = Http2Client::connect(&server);
    let stream = client.get("/?/in");
    client.flush();
    server.advance(filters::HELD_MS);
    assert_eq!(client.answer(stream), ("200", filters::SHOUTED.to_owned()));
    let trailer = ("x-shouted".to_owned(), "9".to_owned());
    assert!(client.answers[&stream].fields.contains(&trailer));
}

/// Adds a handler that reads the body and answers with its length.
fn measure(site: &mut crate::site::Site) {
    handle(site, "/", |_| {
        crate::exchange::Flow::wait(|x| {
            LentFuture::new(async move {
                if let Err(flow) = x.read_body().await {
                    return flow;
                }
                let length = x.request.body.length().unwrap_or_default();
                x.reply.status = 200;
                x.reply.body = crate::exchange::Body::Bytes(crate::exchange::Bytes::Owned(
                    length.to_string().into_bytes(),
                ));
                crate::exchange::Flow::Done
            })
        })
    });
}

#[test]
fn bodies_are_read_and_checked_against_their_length() {
    let site = "error_log e.log info; http2 on; client_max_body_size 1m; client_body_timeout 2s;
                http2_body_preread_size 100; server { location / { } }";
    let server = Server::with(site, measure, |_| {});
    let mut client = Http2Client::connect(&server);
    let body = vec![b'b'; 200_000];
    for announced in [None, Some("200000")] {
        let fields = announced.map(|length| ("content-length", length));
        let stream = client.ask("/", &Vec::from_iter(fields), false);
        let mut rest = &body[..];
        while !rest.is_empty() {
            client.until(|client| client.endpoint.sendable(stream) > 0);
            let count = client.endpoint.sendable(stream).min(rest.len());
            client.endpoint.send_data(stream, &rest[..count], count == rest.len(), 16_384);
            rest = &rest[count..];
        }
        assert_eq!(client.answer(stream.id), ("200", "200000".to_owned()));
        assert_eq!(client.answers[&stream.id].reset, None);
    }
    // More data than announced.
    let stream = client.ask("/", &[("content-length", "3")], false);
    client.endpoint.send_data(stream, b"four", false, 100);
    assert_eq!(client.answer(stream.id).0, "400");
    assert_eq!(client.reset(stream.id), Http2Code::PROTOCOL_ERROR);
    // A body that is too slow.
    let stream = client.ask("/", &[], false);
    client.endpoint.ping([0; 8]);
    client.until(|client| client.pongs == 1);
    server.advance(2000);
    assert_eq!(client.reset(stream.id), Http2Code::PROTOCOL_ERROR);
    let stream = client.ask("/", &[("content-length", "2000000")], false);
    assert_eq!(client.answer(stream.id).0, "413");
    server.advance(200);
    assert_eq!(client.reset(stream.id), Http2Code::NO_ERROR);
}

#[test]
fn a_stream_that_is_cancelled_is_logged() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    client.reads = false;
    let stream = client.ask("/long", &[], true);
    client.until(|client| client.answers[&1].body.len() > 60_000);
    client.endpoint.reset(stream, Http2Code::CANCEL);
    client.flush();
    let (status, bytes) = server.logged();
    assert!(status == 200 && bytes < 100_000, "{status} {bytes}");
    assert!(server.log()[0].starts_with("client canceled stream 1"), "{:?}", server.log());
    let stream = client.get("/");
    assert_eq!(client.answer(stream).0, "200");
}

/// A client that opens no window blocks its stream for `send_timeout`, and no other stream.
#[test]
fn a_stalled_stream_is_reset() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    client.reads = false;
    let stalled = client.get("/long");
    client.until(|client| client.answers[&stalled].body.len() == 65_536);
    let other = client.get("/");
    assert_eq!(client.answer(other).0, "200");
    server.logged();
    server.advance(4100);
    assert_eq!(client.reset(stalled), Http2Code::PROTOCOL_ERROR);
    let (_, bytes) = server.logged();
    assert!((65_536..70_000).contains(&bytes), "{bytes}");
}

#[test]
fn an_idle_connection_ends() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    let stream = client.get("/");
    client.answer(stream);
    for _ in 0..3 {
        server.advance(4000);
        client.endpoint.ping([0; 8]);
        client.flush();
    }
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR));
    let mut silent = Http2Client::connect(&server);
    silent.flush();
    server.advance(3100);
    assert_eq!(silent.end(), Some(Http2Code::NO_ERROR));
}

/// A connection that has been idle for a moment has no task. Its next request is served, and its
/// client receives GOAWAY when `keepalive_timeout` is over.
#[test]
fn an_idle_connection_is_parked() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    for round in 0..3 {
        let name = ("x-field", "value");
        let stream = client.ask("/a", &[name, ("x", "1"), ("cookie", "a=b")], true).id;
        assert_eq!(client.answer(stream).1, "h2c HTTP/2.0 GET /a HTTP/2.0 1 [a=b]");
        assert_eq!(server.parked(), 0, "{round}");
        server.advance(2000);
        assert_eq!(server.parked(), 1, "{round}");
    }
    // Settings and pings are answered, and do not count as requests.
    client.endpoint.ping([0; 8]);
    client.until(|client| client.pongs == 1);
    server.advance(2000);
    assert_eq!(server.parked(), 1);
    server.advance(6000);
    server.advance(1000);
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR));
    assert_eq!(server.parked(), 0);
}

#[test]
fn a_leaving_worker_sends_goaway_to_parked_clients() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    let stream = client.get("/");
    client.answer(stream);
    server.advance(2000);
    assert_eq!(server.parked(), 1);
    server.drain();
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR));
}

#[test]
fn an_incomplete_header_block_times_out() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    let stream = client.get("/");
    client.answer(stream);
    client.get("/late");
    let output = client.endpoint.output().to_vec();
    client.endpoint.advance_output(output.len());
    client.send(&output[..12]);
    server.advance(100);
    server.advance(3000);
    assert_eq!(client.reset(3), Http2Code::PROTOCOL_ERROR);
    client.send(&output[12..]);
    let stream = client.get("/");
    assert_eq!(client.answer(stream).0, "200");
}

/// Nothing else can be received on a connection within a header block. Such a connection once
/// stayed open for ever, because each wait for the rest of the block began a new deadline.
#[test]
fn a_connection_with_an_unfinished_header_block_ends() {
    let server = server();
    let block = b"\x82\x86\x84\x41\x03one";
    let bytes = |frames: &[(u8, u8, u32, &[u8])]| {
        let mut out = Vec::new();
        for &(kind, flags, stream, payload) in frames {
            frame::write(&mut out, kind, flags, stream, payload);
        }
        out
    };
    let head = (HEADERS, END_HEADERS | END_STREAM, 1, &block[..]);
    let upload = (HEADERS, END_HEADERS, 1, &b"\x83\x86\x45\x02/s\x41\x03one"[..]);
    let next = (HEADERS, END_HEADERS | END_STREAM, 3, &block[..]);
    let unfinished = [
        bytes(&[head])[..12].to_vec(),
        bytes(&[(HEADERS, END_STREAM, 1, block)]),
        bytes(&[(HEADERS, END_STREAM, 1, &block[..2]), (9, 0, 1, &block[2..])])[..15].to_vec(),
        bytes(&[head, (HEADERS, 0, 3, block)]),
        bytes(&[head, next])[..30].to_vec(),
        bytes(&[upload, (HEADERS, END_STREAM, 1, b"\0\x01a\x01b")]),
    ];
    for (index, bytes) in unfinished.iter().enumerate() {
        let mut client = Http2Client::connect(&server);
        client.flush();
        client.send(bytes);
        for _ in 0..3 {
            server.advance(3100);
        }
        assert_eq!(client.last_words(), Some(Http2Code::PROTOCOL_ERROR), "{index}");
    }
}

/// A worker that leaves sends GOAWAY; active streams continue.
#[test]
fn a_leaving_worker_accepts_no_further_streams() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    client.reads = false;
    let stream = client.ask("/long", &[], true);
    client.until(|client| client.answers[&1].body.len() == 65_536);
    server.drain();
    client.until(|client| client.went_away.is_some());
    client.reads = true;
    client.endpoint.raise_window(stream, 400_000);
    assert_eq!(client.answer(stream.id).1.len(), 300_000);
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR));
}

/// After `worker_shutdown_timeout`, the streams of an old configuration end. Newer ones continue.
#[test]
fn a_cut_resets_the_streams_of_older_generations() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    client.reads = false;
    let [old, new] = [1, 2].map(|_| {
        let stream = client.ask("/long", &[], true);
        client.until(|client| client.answers[&stream.id].body.len() == 65_536);
        server.reload();
        server.advance(1);
        stream
    });
    server.cut_before(2);
    assert_eq!(client.reset(old.id), Http2Code::INTERNAL_ERROR);
    assert_eq!(server.logged().0, 200);
    client.reads = true;
    client.endpoint.raise_window(new, 400_000);
    assert_eq!(client.answer(new.id).1.len(), 300_000);
    let next = client.get("/");
    assert_eq!(client.answer(next).0, "200");
    server.cut();
    assert_eq!(client.end(), None);
}

#[test]
fn keepalive_requests_hold_for_a_connection() {
    let site = "http2 on; keepalive_requests 2; server { return 200 $connection_requests; }";
    let server = Server::start(site);
    let mut client = Http2Client::connect(&server);
    for expected in ["1", "2"] {
        let stream = client.get("/");
        assert_eq!(client.answer(stream).1, expected);
    }
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR));
}

/// The limit, the bytes sent first, and the bytes sent repeatedly.
type Attack<'a> = (Http2Limit, Vec<u8>, &'a dyn Fn(u32) -> Vec<u8>);

/// Each attack ends its connection with ENHANCE_YOUR_CALM, is logged and counted, and others are
/// served.
#[test]
fn attacks_end_their_connection() {
    let frame = |kind, flags, stream, payload: &[u8]| {
        let mut out = Vec::new();
        frame::write(&mut out, kind, flags, stream, payload);
        out
    };
    let block = b"\x82\x86\x84\x41\x03one";
    let bomb = [&block[..], b"\x40\x01x\x64", &[b'v'; 100], &[0xbe; 500]].concat();
    let get = |id| frame(HEADERS, END_HEADERS | END_STREAM, id, block);
    let open = frame(HEADERS, END_HEADERS, 1, block);
    let cancel = |id| frame(frame::RST_STREAM, 0, id, &[0, 0, 0, 8]);
    let overflow = |id| frame(frame::WINDOW_UPDATE, 0, id, &[0x7f, 0xff, 0xff, 0xff]);
    let attacks: [Attack<'_>; 9] = [
        (Http2Limit::PeerResets, vec![], &|n| [get(2 * n + 1), cancel(2 * n + 1)].concat()),
        (Http2Limit::ProvokedResets, vec![], &|n| [get(2 * n + 1), overflow(2 * n + 1)].concat()),
        (Http2Limit::ContinuationFrames, frame(HEADERS, 0, 1, block), &|_| {
            frame(frame::CONTINUATION, 0, 1, &[])
        }),
        (Http2Limit::Pings, vec![], &|_| frame(frame::PING, 0, 0, &[0; 8])),
        (Http2Limit::Settings, vec![], &|_| frame(frame::SETTINGS, 0, 0, &[])),
        (Http2Limit::Priorities, vec![], &|_| frame(frame::PRIORITY, 0, 1, &[0; 5])),
        (Http2Limit::EmptyData, open.clone(), &|_| frame(frame::DATA, 0, 1, &[])),
        (Http2Limit::WindowUpdates, open, &|_| frame(frame::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        (Http2Limit::FieldsBytes, vec![], &|_| frame(HEADERS, END_HEADERS, 1, &bomb)),
    ];
    let server = Server::with(
        SITE.replace("send_timeout", "keepalive_requests 100000; send_timeout"),
        measure,
        |_| {},
    );
    for (limit, before, next) in attacks {
        let exceeded = totals::exceeded(limit);
        let mut client = Http2Client::connect(&server);
        client.flush();
        client.send(&before);
        for n in 0..5000 {
            client.send(&next(n));
            if client.is_closed {
                break;
            }
        }
        assert_eq!(client.last_words(), Some(Http2Code::ENHANCE_YOUR_CALM), "{limit:?}");
        let line = format!("client {}", limit.what());
        assert!(server.log().iter().any(|logged| logged.starts_with(&line)), "{limit:?}");
        assert_eq!(totals::exceeded(limit), exceeded + 1, "{limit:?}");
        let mut other = Http2Client::connect(&server);
        let stream = other.get("/");
        assert_eq!(other.answer(stream).0, "200", "{limit:?}");
    }
}

/// The totals of the process include the counts of a connection, at the latest when it is over.
#[test]
fn counts_reach_the_variables() {
    let site = "http2 on; server { return 200 \"$http2_pings_count $http2_pings_exceeded\"; }";
    let server = Server::start(site);
    let read = || {
        let reply = server.ask("GET / HTTP/1.1\r\nHost: one\r\nConnection: close\r\n\r\n");
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
        let numbers = body.split(' ').map(|number| number.parse().unwrap());
        <[u64; 2]>::try_from(numbers.collect::<Vec<_>>()).unwrap()
    };
    let before = read();
    let mut client = Http2Client::connect(&server);
    for _ in 0..50 {
        client.endpoint.ping([0; 8]);
    }
    client.until(|client| client.pongs == 50);
    server.advance(1000);
    client.endpoint.ping([0; 8]);
    client.until(|client| client.pongs == 51);
    let after = read();
    assert!(after[0] >= before[0] + 50, "{before:?} {after:?}");
}
