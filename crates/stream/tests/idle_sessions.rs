//! The memory of an idle session.
//!
//! The worker has a thread of its own, whose memory is counted.

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

const CLIENTS: usize = 50;

/// The most memory of a session that waits for its PROXY header.
const WAITING_MAX: i64 = 1500;
/// The most memory of a session that has relayed data to and from a server.
const RELAYED_MAX: i64 = 2500;

/// The most samples of the memory, and how many equal ones in a row mean that it is steady.
const LOOKS_MAX: usize = 1000;
const STEADY_LOOKS: usize = 20;

#[test]
fn a_session_that_waits_for_its_proxy_header_is_small() {
    let held = held("server { listen 127.0.0.1:1 proxy_protocol; return held; }", |_| {});
    assert!((1..=WAITING_MAX).contains(&held), "{held}");
}

#[test]
fn an_idle_relay_is_small() {
    let text = format!("server {{ listen 127.0.0.1:1; proxy_pass {}; }}", echo());
    let held = held(&text, |mut client| {
        let mut answer = [0; 64];
        client.write_all(&answer).unwrap();
        client.read_exact(&mut answer).unwrap();
    });
    assert!((1..=RELAYED_MAX).contains(&held), "{held}");
}

/// The memory per session, after every client has run its part.
fn held(text: &str, part: fn(&TcpStream)) -> i64 {
    let text = text.to_owned();
    let worker = std::thread::spawn(move || {
        net::run(async {
            let generation = stream::StreamGeneration::new(Arc::new(site(&text)), 1);
            let worker = stream::StreamWorker::new(generation);
            let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
            let mut clients = Vec::with_capacity(2 * CLIENTS);
            let mut before = 0;
            // Memory that only the first sessions allocate is not counted.
            for number in 0..2 * CLIENTS {
                if number == CLIENTS {
                    before = settled().await;
                }
                let (near, far) = connected_pair();
                far.set_nonblocking(true).unwrap();
                let peer = Some(near.local_addr().unwrap());
                let arrival = Arrival { fd: far.into(), peer, slot: 0 };
                worker.start(balancer.assign(arrival).ok().flatten().unwrap(), false);
                let client = std::thread::spawn(move || {
                    part(&near);
                    near
                });
                while !client.is_finished() {
                    net::sleep(Duration::from_millis(1)).await;
                }
                clients.push(client.join().unwrap());
            }
            (settled().await - before) / CLIENTS as i64
        })
    });
    worker.join().unwrap().unwrap()
}

/// The memory in use, once it is steady.
async fn settled() -> i64 {
    let (mut last, mut same) = (0, 0);
    for _ in 0..LOOKS_MAX {
        net::sleep(Duration::from_millis(5)).await;
        same = if live() == last { same + 1 } else { 0 };
        last = live();
        if same == STEADY_LOOKS {
            break;
        }
    }
    last
}

/// A server that echoes its input.
fn echo() -> SocketAddr {
    Peer::playing(|connection| std::io::copy(&mut connection.stream(), &mut connection.stream()))
        .address
}

fn site(text: &str) -> stream::StreamSite {
    let text = format!("stream {{ {text} }}");
    let mut files = conf::MemoryFiles::default().with("/nginx.conf", text);
    let (_, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.unwrap();
    let mut load = conf::Load::new(&mut files, Path::new("/"), Path::new("/"));
    let plan = stream::read(&tree.root[0], &mut load).unwrap();
    plan.compile(&mut load).unwrap()
}
