//! A client that does not read its reply holds no more memory than the location's buffers allow.
//!
//! The worker has a thread of its own here; the backend, which sends without end, has others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use net::Arrival;
use net::allocations::{Counting, live};
use testing::{Peer, connected_pair};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CLIENTS: usize = 40;

/// What an exchange, its connections and their tasks take beside the buffers.
const EXCHANGE_MAX: i64 = 7 * 1024;

const LOOKS_MAX: usize = 100;

#[test]
fn a_slow_reader_holds_what_the_buffers_allow() {
    for (lines, buffers) in [
        // The first piece of the body may have come with the head, in its buffer.
        ("", (4 + 32) << 10),
        ("proxy_buffers 2 4k; proxy_busy_buffers_size 4k;", (4 + 8) << 10),
        ("proxy_buffering off;", 4 << 10),
        ("proxy_buffering off; proxy_buffer_size 1k;", 1 << 10),
    ] {
        let most = EXCHANGE_MAX + buffers;
        let held = held(lines, most);
        assert!(held <= most, "\"{lines}\": {held}");
    }
}

/// Bytes for each client, once everything stands still. On a busy machine it may seem to stand
/// still before it does, so more than `most` is looked at again.
fn held(lines: &str, most: i64) -> i64 {
    let backend = backend();
    let lines = lines.to_owned();
    let worker = std::thread::spawn(move || {
        let mut held = 0;
        net::run(async {
            let generation = http::Generation::new(Arc::new(site(backend, &lines)), 1);
            let worker = http::Worker::new(generation);
            let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
            let mut clients = Vec::new();
            let mut before = 0;
            // What the first client needs once is not counted.
            for number in 0..=CLIENTS {
                let (mut near, far) = connected_pair();
                far.set_nonblocking(true).unwrap();
                near.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
                let arrival = Arrival { fd: far.into(), peer: None, slot: 0 };
                worker.start(balancer.assign(arrival).ok().flatten().unwrap(), false);
                clients.push(near);
                if number == 0 {
                    before = settled().await;
                }
            }
            for _ in 0..LOOKS_MAX {
                held = (settled().await - before) / CLIENTS as i64;
                if held <= most {
                    break;
                }
            }
            for near in &mut clients {
                let mut start = [0; 15];
                near.read_exact(&mut start).unwrap();
                assert_eq!(&start, b"HTTP/1.1 200 OK");
            }
        })
        .unwrap();
        held
    });
    worker.join().unwrap()
}

/// Bytes in use once that has not changed for a while.
async fn settled() -> i64 {
    let (mut last, mut same) = (0, 0);
    while same < 20 {
        net::sleep(Duration::from_millis(10)).await;
        same = if live() == last { same + 1 } else { 0 };
        last = live();
    }
    last
}

/// A server that sends as much as is taken.
fn backend() -> SocketAddr {
    Peer::playing(|connection| send(connection.stream())).address
}

fn send(mut stream: &TcpStream) {
    let _ = stream.read(&mut [0; 1024]);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    let piece = [b'x'; 8 * 1024];
    while stream.write_all(&piece).is_ok() {}
}

fn site(backend: SocketAddr, lines: &str) -> http::Site {
    let text = format!(
        "http {{ access_log off; server {{ location / {{
             proxy_pass http://{backend}; proxy_max_temp_file_size 0; {lines} }} }} }}"
    );
    let mut files = conf::MemoryFiles::default().with("/nginx.conf", text);
    let (_, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.unwrap();
    let mut load = conf::Load::new(&mut files, Path::new("/"), Path::new("/"));
    let plan = http::read(&tree.root[0], &mut load).unwrap();
    plan.compile(&mut load).unwrap()
}
