//! Once warm, a request on a kept connection takes no memory from the allocator: in plain text,
//! over TLS, and with HTTP/2 over TLS.
//!
//! Server and client share a thread, so that what the server takes is counted; the client takes
//! nothing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::future::poll_fn;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use net::allocations::{Counting, count};
use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY};
use net::tls::{ClientTls, ClientTlsPlan, TlsServerName};
use net::{AcceptBalancer, Arrival, Stream, Timer};
use testing::Folder;
use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, WINDOW_MAX};
use wire::tls::{TlsGroup, TlsSuite};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests that make everything warm.
const WARM_UP: usize = 300;
/// Requests that are counted.
const COUNTED: usize = 1000;

/// Files are this crate's own.
const PATHS: [&str; 7] = [
    "/return",
    "/Cargo.toml",
    "/src/drive/send.rs",
    "/cached/Cargo.toml",
    "/vars?a=b",
    "/logged",
    "/limited/Cargo.toml",
];

/// Only HTTP/2 sends trailers without chunks. The streams of a connection send more of the large
/// file together than it may in a turn.
const HTTP2_PATHS: [&str; 2] = ["/trailers", "/large"];

/// Fits into memory with what else is kept of a file.
const LARGE_BYTES: usize = 240 * 1024;

/// Requests at once on a connection of HTTP/2.
const STREAMS: usize = 8;
/// Allocations that are no request's: on a busy machine more buffers may be lent at once than ever
/// before.
const SPARE: u64 = 8;

#[test]
fn a_warm_connection_allocates_nothing() {
    let folder = Folder::new();
    net::run(async {
        let server = Server::start(&folder, "8080");
        for path in PATHS {
            let mut client = Client::new(server.connect(), path);
            count_allocations(path, async || client.ask().await).await;
        }
    })
    .unwrap();
}

#[test]
fn a_warm_connection_to_a_backend_allocates_nothing() {
    let folder = Folder::new();
    // Allocations of its threads are not counted.
    let reply = "HTTP/1.1 200 OK\nContent-Length: 5\nETag: \"1\"\n\nhello";
    let backend = testing::Peer::replying(reply).address;
    net::run(async {
        let server = Server::with_backend(&folder, "8080", backend);
        let mut client = Client::new(server.connect(), "/proxied");
        count_allocations("/proxied", async || client.ask().await).await;
    })
    .unwrap();
}

#[test]
fn a_warm_tls_connection_allocates_nothing() {
    let folder = Folder::new();
    net::run(async {
        let server = Server::start(&folder, "8443 ssl");
        for path in PATHS {
            let stream = secured(server.connect(), b"http/1.1").await;
            let mut client = Client::new(stream, path);
            count_allocations(path, async || client.ask().await).await;
        }
    })
    .unwrap();
}

#[test]
fn a_warm_http2_connection_allocates_nothing() {
    let folder = Folder::new();
    folder.write("large", vec![b'a'; LARGE_BYTES]);
    net::run(async {
        let server = Server::start(&folder, "8443 ssl http2");
        // What has just been written is not kept in memory yet.
        net::testing::advance(10_000).await;
        for path in PATHS.into_iter().chain(HTTP2_PATHS) {
            let stream = secured(server.connect(), b"h2").await;
            let mut client = Http2Client::new(stream, path);
            count_allocations(path, async || client.ask().await).await;
        }
    })
    .unwrap();
}

/// Fails if requests need memory once everything is warm.
async fn count_allocations(path: &str, mut ask: impl AsyncFnMut()) {
    for _ in 0..WARM_UP {
        ask().await;
    }
    let before = count();
    for _ in 0..COUNTED {
        ask().await;
    }
    let allocations = count() - before;
    assert!(allocations <= SPARE, "{allocations} allocations in {COUNTED} turns for {path}");
}

struct Server {
    worker: Rc<http::Worker>,
    balancer: Rc<AcceptBalancer>,
}

impl Server {
    fn start(folder: &Path, listen: &str) -> Self {
        Self::with_backend(folder, listen, UNUSED)
    }

    fn with_backend(folder: &Path, listen: &str, backend: SocketAddr) -> Self {
        let generation = http::Generation::new(Arc::new(site(folder, listen, backend)), 1);
        // With the time, connections that wait are parked, and a new date enters HPACK's tables.
        net::testing::stop_clock();
        let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
        Self { worker: http::Worker::new(generation), balancer }
    }

    fn connect(&self) -> Stream {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let arrival = Arrival { fd: far.into(), peer: None, slot: 0 };
        self.worker.start(self.balancer.assign(arrival).ok().flatten().unwrap(), false);
        Stream::new(near.into())
    }
}

/// Agrees on keys; what follows is sealed by the records that the server uses, too.
async fn secured(mut stream: Stream, protocol: &[u8]) -> Stream {
    let plan = ClientTlsPlan {
        has_tls13: true,
        suites: vec![TlsSuite::from_code(0x1301).unwrap()],
        groups: vec![TlsGroup::X25519],
        record_max: 16 * 1024,
        protocols: vec![protocol.into()],
        ..ClientTlsPlan::default()
    };
    let name = TlsServerName::none();
    let session = ClientTls::new(plan).unwrap().session(&name).unwrap();
    let timer = Timer::new();
    timer.set(60_000);
    net::accept::secure(&mut stream, session, &timer).await.unwrap();
    assert!(stream.tls().unwrap().has_protocol(protocol));
    stream
}

fn site(prefix: &Path, listen: &str, backend: SocketAddr) -> http::Site {
    let (here, own) = (env!("CARGO_MANIFEST_DIR"), prefix.display());
    let text = format!(
        "http {{
        access_log off;
        keepalive_requests 100000;
        limit_req_zone $binary_remote_addr zone=a:1m rate=100000r/s;
        upstream backend {{ server {backend}; keepalive 4; keepalive_requests 100000; }}
        server {{
            listen {listen};
            ssl_certificate 'data:{ECDSA_CERTIFICATE}';
            ssl_certificate_key 'data:{ECDSA_KEY}';
            root {here};
            location /trailers {{ add_trailer X-End $request_method; return 200 hello; }}
            location /large {{ root {own}; }}
            location /return {{ return 200 hello; }}
            location /vars {{ return 200 $uri$arg_a$host$request_method; }}
            location /cached/ {{ open_file_cache max=100; alias {here}/; }}
            location /limited/ {{
                set_real_ip_from unix:;
                limit_req zone=a burst=100000 nodelay;
                alias {here}/;
            }}
            location /proxied {{ proxy_pass http://backend; }}
            location /logged {{ access_log logged.log combined; return 200 hello; }}
        }}
    }}"
    );
    let mut files = conf::MemoryFiles::default().with("/nginx.conf", text);
    let (_, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.unwrap();
    let mut load = conf::Load::new(&mut files, prefix, Path::new("/"));
    let plan = http::read(&tree.root[0], &mut load).unwrap();
    plan.compile(&mut load).unwrap()
}

struct Client {
    stream: Stream,
    request: Vec<u8>,
    reply: Vec<u8>,
    /// Bytes of a reply, known after the first.
    length: usize,
}

impl Client {
    fn new(stream: Stream, path: &str) -> Self {
        let fields = "Host: localhost\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\
                      X-Real-IP: 192.0.2.1\r\n";
        let request = format!("GET {path} HTTP/1.1\r\n{fields}\r\n");
        Self { stream, request: request.into(), reply: Vec::with_capacity(64 * 1024), length: 0 }
    }

    async fn ask(&mut self) {
        let Self { stream, request, reply, length } = self;
        reply.clear();
        let sent = poll_fn(|cx| stream.poll_write(cx, &[IoSlice::new(request)])).await;
        assert_eq!(sent.unwrap(), request.len());
        while *length == 0 || reply.len() < *length {
            let read = poll_fn(|cx| stream.poll_read(cx, reply)).await.unwrap();
            assert!(read > 0, "closed");
            if *length == 0 {
                *length = reply_length(reply).unwrap_or(0);
            }
        }
        assert_eq!(reply.len(), *length);
        assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", reply.escape_ascii());
    }
}

/// Sends several requests at once.
struct Http2Client {
    stream: Stream,
    endpoint: Http2Endpoint,
    path: String,
    input: Vec<u8>,
}

impl Http2Client {
    fn new(stream: Stream, path: &str) -> Self {
        let config = Http2Config { stream_window: WINDOW_MAX, ..Http2Config::default() };
        let endpoint = Http2Endpoint::new(Http2Role::Client, config);
        Self { stream, endpoint, path: path.into(), input: Vec::with_capacity(64 * 1024) }
    }

    async fn ask(&mut self) {
        let fields: [(&[u8], &[u8]); 9] = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", self.path.as_bytes()),
            (b"user-agent", b"curl/7.88.1"),
            (b"accept", b"*/*"),
            (b"x-real-ip", b"192.0.2.1"),
            (b"cookie", b"a=b"),
            (b"cookie", b"c=d"),
        ];
        for _ in 0..STREAMS {
            let stream = self.endpoint.open().unwrap();
            let mut writer = self.endpoint.begin_fields(stream).unwrap();
            fields.iter().for_each(|(name, value)| writer.field(name, value));
            writer.finish(true);
        }
        let mut left = STREAMS;
        while left > 0 {
            self.send().await;
            self.input.clear();
            let Self { stream, input, .. } = self;
            let read = poll_fn(|cx| stream.poll_read(cx, input)).await.unwrap();
            assert!(read > 0, "closed");
            left -= self.take();
        }
    }

    async fn send(&mut self) {
        let Self { stream, endpoint, .. } = self;
        while !endpoint.output().is_empty() {
            let output = endpoint.output();
            let sent = poll_fn(|cx| stream.poll_write(cx, &[IoSlice::new(output)])).await;
            endpoint.advance_output(sent.unwrap());
        }
    }

    /// How many replies have come to their end.
    fn take(&mut self) -> usize {
        let (mut at, mut ended) = (0, 0);
        loop {
            let received = self.endpoint.receive(&self.input[at..]).unwrap();
            at += received.consumed;
            match received.event {
                None => return ended,
                Some(Http2Event::Head { .. }) => {
                    let status = self.endpoint.fields().iter().next();
                    assert_eq!(status, Some((&b":status"[..], &b"200"[..])));
                }
                Some(
                    Http2Event::Data { stream, end_stream: true, .. }
                    | Http2Event::Trailers { stream },
                ) => {
                    self.endpoint.release(stream, Http2Code::CANCEL);
                    ended += 1;
                }
                Some(_) => {}
            }
        }
    }
}

fn reply_length(reply: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(reply);
    let head = text.find("\r\n\r\n")? + 4;
    let (_, rest) = text[..head].split_once("Content-Length: ")?;
    Some(head + rest.split_once("\r\n")?.0.parse::<usize>().ok()?)
}

/// The address of a backend that no request goes to.
const UNUSED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
