//! Once warm, a request on a kept connection takes no memory from the allocator.
//!
//! Server and client share a thread, so that what the server takes is counted; the client takes
//! nothing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::future::poll_fn;
use std::io::IoSlice;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use net::allocations::{Counting, count};
use net::{Arrival, Stream};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests that make everything warm.
const WARM_UP: usize = 300;
/// Requests that are counted.
const COUNTED: usize = 1000;

/// Files are this crate's own: what has just been written is not kept in memory yet.
const PATHS: [&str; 7] = [
    "/return",
    "/Cargo.toml",
    "/src/drive/send.rs",
    "/cached/Cargo.toml",
    "/vars?a=b",
    "/logged",
    "/limited/Cargo.toml",
];

#[test]
fn a_warm_connection_allocates_nothing() {
    let folder = Folder::new();
    net::run(async {
        let generation = http::Generation::new(Arc::new(site(&folder.0)), 1);
        let worker = http::Worker::new(generation);
        let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
        for path in PATHS {
            let (near, far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            let arrival = Arrival { fd: far.into(), peer: None, slot: 0 };
            worker.start(balancer.assign(arrival).ok().flatten().unwrap(), false);
            let mut client = Client::new(Stream::new(near.into()), path);
            for _ in 0..WARM_UP {
                client.ask().await;
            }
            let before = count();
            for _ in 0..COUNTED {
                client.ask().await;
            }
            assert_eq!(count() - before, 0, "allocations in {COUNTED} requests for {path}");
        }
    })
    .unwrap();
}

fn site(prefix: &Path) -> http::Site {
    let here = env!("CARGO_MANIFEST_DIR");
    let text = format!(
        "http {{
        access_log off;
        keepalive_requests 100000;
        limit_req_zone $binary_remote_addr zone=a:1m rate=100000r/s;
        server {{
            root {here};
            location /return {{ return 200 hello; }}
            location /vars {{ return 200 $uri$arg_a$host$request_method; }}
            location /cached/ {{ open_file_cache max=100; alias {here}/; }}
            location /limited/ {{
                set_real_ip_from unix:;
                limit_req zone=a burst=100000 nodelay;
                alias {here}/;
            }}
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

fn reply_length(reply: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(reply);
    let head = text.find("\r\n\r\n")? + 4;
    let (_, rest) = text[..head].split_once("Content-Length: ")?;
    Some(head + rest.split_once("\r\n")?.0.parse::<usize>().ok()?)
}

/// A directory that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("weir-allocations-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
