//! The limit and its queue through the real driver, with backends that answer on demand.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::backend::testing::TestBackend;
use crate::h1::tests::{Client, PATIENCE, Server};

/// A backend whose requests wait for the test.
struct Gate {
    backend: TestBackend,
    /// The requests, as they arrive.
    held: Receiver<Held>,
    /// The connections, as they are accepted.
    connections: Receiver<()>,
}

/// A request in progress; its reply begins when this is dropped.
struct Held {
    path: String,
    _go: Sender<()>,
}

impl Gate {
    /// Replies with the path, its length first.
    fn new() -> Self {
        let (arrive, held) = channel();
        let (connect, connections) = channel();
        let (arrive, connect) = (Mutex::new(arrive), Mutex::new(connect));
        let backend = TestBackend::playing(move |mut peer| {
            let _ = connect.lock().unwrap().send(());
            while let Some(request) = peer.request() {
                let path = request.split(' ').nth(1).unwrap().to_owned();
                let (go, told) = channel::<()>();
                let _ = arrive.lock().unwrap().send(Held { path: path.clone(), _go: go });
                let _ = told.recv();
                let length = path.len();
                peer.send(&format!("HTTP/1.1 200 OK\nContent-Length: {length}\n\n{path}"));
            }
        });
        Self { backend, held, connections }
    }

    /// The next request; asserts its path.
    #[track_caller]
    fn expect(&self, path: &str) -> Held {
        let held = self.held.recv_timeout(PATIENCE).expect("a request");
        assert_eq!(held.path, path);
        held
    }

    /// Fails if another request has arrived, or arrives shortly.
    #[track_caller]
    fn expect_none(&self) {
        let came = self.held.recv_timeout(Duration::from_millis(30));
        assert_eq!(came.map(|held| held.path).err(), Some(RecvTimeoutError::Timeout));
    }
}

/// Passes requests on to groups: those below `/b/` to the second, the others to the first.
fn limited(main: &str, groups: [&str; 2]) -> Server {
    let [a, b] = groups;
    Server::start(format!(
        "error_log e.log notice; proxy_set_header Connection ''; {main} \
         upstream a {{ {a} }} upstream b {{ {b} }} \
         server {{ \
             add_header X-Waited $upstream_queue_time always; \
             add_header X-Status $upstream_status always; \
             location / {{ proxy_pass http://a; }} location /b/ {{ proxy_pass http://b; }} \
         }}"
    ))
}

/// A server with one group of these gates.
fn grouped(gates: &[&Gate], lines: &str) -> Server {
    let servers: Vec<String> =
        gates.iter().map(|gate| format!("server {};", gate.backend.address())).collect();
    let group = format!("{} {lines}", servers.join(" "));
    limited("limit_upstream_zone z 1m;", [&group, "server 127.0.0.1:1;"])
}

fn ask(server: &Server, path: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
    client
}

/// The same; returns once the request waits, as number `place`.
fn ask_and_wait(server: &Server, path: &str, place: u32) -> Client {
    let client = ask(server, path);
    let words = format!(
        "limit upstream: request is queued at position {place} while waiting for upstream, client: \
         unix:, server: , request: \"GET {path} HTTP/1.0\""
    );
    await_line(server, &words);
    client
}

fn await_line(server: &Server, words: &str) {
    let end = Instant::now() + PATIENCE;
    while !server.log().iter().any(|line| line.starts_with(words)) {
        assert!(Instant::now() < end, "no {words:?} in {:#?}", server.log());
        std::thread::yield_now();
    }
}

#[track_caller]
fn served(mut client: Client, path: &str) {
    let reply = client.rest();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with(path), "{reply}");
}

#[track_caller]
fn refused(mut client: Client, status: &str) -> String {
    let reply = client.rest();
    assert!(reply.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{reply}");
    reply
}

#[test]
fn requests_above_the_limit_are_served_in_order_on_the_same_connections() {
    let gate = Gate::new();
    let server = grouped(&[&gate], "limit_upstream_conn zone=z limit=2;");
    let first = ask(&server, "/1");
    let mut held = vec![gate.expect("/1")];
    let second = ask(&server, "/2");
    held.push(gate.expect("/2"));
    let waiting: Vec<_> = (3..7).map(|n| ask_and_wait(&server, &format!("/{n}"), n - 2)).collect();
    gate.expect_none();
    held.remove(0);
    served(first, "/1");
    held.push(gate.expect("/3"));
    gate.expect_none();
    drop(held);
    served(second, "/2");
    for _ in 4..7 {
        // Two at a time, so either may arrive first. Each waits for the test.
        drop(gate.held.recv_timeout(PATIENCE).expect("a request"));
    }
    for (client, n) in waiting.into_iter().zip(3..) {
        served(client, &format!("/{n}"));
    }
    assert_eq!(gate.connections.try_iter().count(), 2, "a waiter takes the idle connection");
}

#[test]
fn a_full_backlog_is_502_at_once_and_no_failure_of_the_server() {
    let gate = Gate::new();
    let lines = "limit_upstream_conn zone=z limit=1 backlog=1; limit_upstream_log_level error;";
    let server = grouped(&[&gate], lines);
    let one = ask(&server, "/1");
    let held = gate.expect("/1");
    let two = ask_and_wait(&server, "/2", 1);
    let reply = refused(ask(&server, "/3"), "502 Bad Gateway");
    assert!(reply.contains("X-Waited: 0.000") && reply.contains("X-Status: 502"), "{reply}");
    await_line(&server, "limit upstream: request is rejected, the queue is full");
    assert!(!server.log().iter().any(|line| line.contains("no live upstreams")));
    drop(held);
    served(one, "/1");
    drop(gate.expect("/2"));
    served(two, "/2");
}

#[test]
fn nodelay_refuses_instead_of_queueing() {
    let gate = Gate::new();
    let server = grouped(&[&gate], "limit_upstream_conn zone=z limit=1 nodelay;");
    let one = ask(&server, "/1");
    let held = gate.expect("/1");
    refused(ask(&server, "/2"), "502 Bad Gateway");
    drop(held);
    served(one, "/1");
}

#[test]
fn a_request_that_waits_for_too_long_is_408_and_asks_no_other_server() {
    let (gate, other) = (Gate::new(), Gate::new());
    let server = grouped(&[&gate, &other], "limit_upstream_conn zone=z limit=1 timeout=100ms;");
    let (one, two) = (ask(&server, "/1"), ask(&server, "/2"));
    let held = [&gate, &other].map(|gate| gate.held.recv_timeout(PATIENCE).unwrap());
    let three = ask_and_wait(&server, "/3", 1);
    server.advance(100);
    let reply = refused(three, "408 Request Time-out");
    assert!(reply.contains("X-Waited: 0.100") && reply.contains("X-Status: 408"), "{reply}");
    await_line(&server, "limit upstream: request timed out after 1");
    drop(held);
    served(one, "/1");
    served(two, "/2");
    assert!(gate.held.try_recv().is_err() && other.held.try_recv().is_err());
    assert!(!server.log().iter().any(|line| line.contains("temporarily disabled")));
}

#[test]
fn a_queue_holds_what_max_conns_keeps_out_and_its_timeout_is_502() {
    let gate = Gate::new();
    let address = gate.backend.address();
    let group = format!("server {address} max_conns=1; queue 2 timeout=200ms;");
    let server = limited("", [&group, "server 127.0.0.1:1;"]);
    let one = ask(&server, "/1");
    let held = gate.expect("/1");
    let late = ask_and_wait(&server, "/late", 1);
    server.advance(200);
    let reply = refused(late, "502 Bad Gateway");
    assert!(reply.contains("X-Waited: 0.200"), "{reply}");
    let two = ask_and_wait(&server, "/2", 1);
    drop(held);
    served(one, "/1");
    drop(gate.expect("/2"));
    served(two, "/2");
}

#[test]
fn a_client_that_leaves_frees_its_slot() {
    let gate = Gate::new();
    let server = grouped(&[&gate], "limit_upstream_conn zone=z limit=1 backlog=1;");
    let one = ask(&server, "/1");
    let held = gate.expect("/1");
    drop(ask_and_wait(&server, "/2", 1));
    assert_eq!(server.logged().0, 499);
    let three = ask_and_wait(&server, "/3", 1);
    drop(held);
    served(one, "/1");
    drop(gate.expect("/3"));
    served(three, "/3");
}

#[test]
fn groups_of_one_zone_share_the_count_and_the_smaller_limit_applies() {
    let gate = Gate::new();
    let address = gate.backend.address();
    let group = |limit| format!("server {address}; limit_upstream_conn zone=z limit={limit};");
    let server = limited("limit_upstream_zone z 1m;", [&group(7), &group(1)]);
    let one = ask(&server, "/1");
    let held = gate.expect("/1");
    let two = ask_and_wait(&server, "/b/2", 1);
    let three = ask_and_wait(&server, "/3", 2);
    drop(held);
    served(one, "/1");
    drop(gate.expect("/b/2"));
    served(two, "/b/2");
    drop(gate.expect("/3"));
    served(three, "/3");
}

#[test]
fn a_slot_is_held_to_the_end_of_the_reply() {
    let (go, told) = channel::<()>();
    let told = Mutex::new(told);
    let backend = TestBackend::playing(move |mut peer| {
        while peer.request().is_some() {
            peer.send("HTTP/1.1 200 OK\nContent-Length: 4\n\nab");
            let _ = told.lock().unwrap().recv_timeout(PATIENCE);
            peer.send_raw("cd");
        }
    });
    let group = format!("server {}; limit_upstream_conn zone=z limit=1;", backend.address());
    let server =
        limited("limit_upstream_zone z 1m; proxy_buffering off;", [&group, "server 127.0.0.1:1;"]);
    let mut one = ask(&server, "/1");
    one.expect_some();
    backend.asked();
    let two = ask_and_wait(&server, "/2", 1);
    backend.expect_unasked();
    go.send(()).unwrap();
    assert!(one.rest().ends_with("abcd"));
    backend.asked();
    go.send(()).unwrap();
    served(two, "abcd");
}

#[test]
fn a_request_tried_elsewhere_returns_its_slot_and_waits_only_for_other_servers() {
    let bad = TestBackend::replying("HTTP/1.1 500 Bad\nContent-Length: 0\n\n");
    let gate = Gate::new();
    let group = format!(
        "server {} max_fails=0; server {}; limit_upstream_conn zone=z limit=1;",
        bad.address(),
        gate.backend.address()
    );
    let main = "limit_upstream_zone z 1m; proxy_next_upstream http_500;";
    let server = limited(main, [&group, "server 127.0.0.1:1;"]);
    let one = ask(&server, "/1");
    let held = gate.expect("/1");
    let two = ask_and_wait(&server, "/2", 1);
    // If it had kept its slot of the first server, this request could not be sent there.
    let three = ask_and_wait(&server, "/3", 2);
    assert_eq!(
        [(); 3].map(|()| bad.asked().split(' ').nth(1).unwrap().to_owned()),
        ["/1", "/2", "/3"]
    );
    drop(held);
    served(one, "/1");
    drop(gate.expect("/2"));
    served(two, "/2");
    drop(gate.expect("/3"));
    served(three, "/3");
}

#[test]
fn variables_describe_the_queue() {
    let gate = Gate::new();
    let group = format!("server {}; limit_upstream_conn zone=z limit=1;", gate.backend.address());
    let main = "limit_upstream_zone z 1m; add_header X-Line \"$limit_upstream_in_progress \
                $limit_upstream_waiting $limit_upstream_queued $limit_upstream_rejected \
                $limit_upstream_timed_out $limit_upstream_waited\";";
    let server = Server::start(format!(
        "error_log e.log notice; {main} upstream a {{ {group} }} \
         server {{ location / {{ proxy_pass http://a; }} location /no {{ return 204; }} }}"
    ));
    let mut one = ask(&server, "/1");
    let held = gate.expect("/1");
    let mut two = ask_and_wait(&server, "/2", 1);
    drop(held);
    let reply = one.rest();
    // The second got the slot while the first reply was still being read.
    assert!(reply.contains("X-Line: 1 0 1 0 0 0.0"), "{reply}");
    drop(gate.expect("/2"));
    let reply = two.rest();
    assert!(reply.contains("X-Line: 0 0 1 0 0 0.0"), "{reply}");
    let reply = ask(&server, "/no").rest();
    assert!(!reply.contains("X-Line: 0"), "no group, no line: {reply}");
}
