//! The limit towards a backend holds over all workers, and whoever has waited longest is next.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::net::TcpStream;
use std::thread;

use server::counting::{Backend, reply, send};
use testing::{Server, eventually};

const WORKERS: &str = "worker_processes 2;";

fn site(backend: &Backend, limit: &str) -> String {
    format!(
        "limit_upstream_zone z 1m; limit_upstream_log_level notice;
         upstream backend {{ server {}; limit_upstream_conn zone=z {limit}; }}
         server {{
             listen ADDRESS;
             location / {{ proxy_pass http://backend; }}
             location = /limit {{ return 200 '{limit}'; }}
         }}",
        backend.address
    )
}

#[test]
fn forty_clients_of_two_workers_never_exceed_a_limit_of_five() {
    const CLIENTS: usize = 40;
    const REQUESTS: usize = 10;
    let backend = Backend::start();
    let server = Server::start(WORKERS, &site(&backend, "limit=5"));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                for request in 0..REQUESTS {
                    let path = format!("/{client}/{request}");
                    assert_eq!(server.get(&path), path);
                }
            });
        }
        eventually("five requests", || backend.counts(|counts| counts.most >= 5).then_some(()));
        backend.allow(usize::MAX / 2);
    });
    let (most, came) = backend.counts(|counts| (counts.most, counts.came.len()));
    assert_eq!((most, came), (5, CLIENTS * REQUESTS));
    let connections = backend.counts(|counts| counts.connections);
    // Five for each worker are enough, but a slot may come before the connection it goes with.
    assert!(connections <= CLIENTS, "{connections} connections for {came} requests");
}

#[test]
fn requests_of_all_workers_are_served_in_their_order() {
    let backend = Backend::start();
    let server = Server::start(WORKERS, &site(&backend, "limit=1 backlog=12 timeout=20s"));
    let mut sent = vec![send(&server, "/0")];
    backend.await_in_progress(1);
    for place in 1..=12 {
        sent.push(send(&server, &format!("/{place}")));
        server.await_log(&format!("limit upstream: request is queued at position {place} "), 1);
    }
    let refused = reply(send(&server, "/more"));
    assert!(refused.starts_with("HTTP/1.1 502 "), "{refused}");
    backend.allow(13);
    for (place, stream) in sent.into_iter().enumerate() {
        assert!(reply(stream).ends_with(&format!("\r\n\r\n/{place}")));
    }
    let order: Vec<String> = (0..=12).map(|place| format!("/{place}")).collect();
    assert_eq!(backend.counts(|counts| counts.came.clone()), order);
    // The connection goes with the slot, from worker to worker.
    assert_eq!(backend.counts(|counts| (counts.most, counts.connections)), (1, 1));
}

#[test]
fn a_reload_changes_the_limit_and_keeps_waiting_requests() {
    let backend = Backend::start();
    let server = Server::start(WORKERS, &site(&backend, "limit=1 timeout=20s"));
    let mut sent = vec![send(&server, "/0")];
    backend.await_in_progress(1);
    for place in 1..=5 {
        sent.push(send(&server, &format!("/{place}")));
        server.await_log(&format!("limit upstream: request is queued at position {place} "), 1);
    }
    // Another size of the zone is not another zone. The old generation ends with its requests.
    server.configure(WORKERS, &site(&backend, "limit=3 timeout=20s").replace("z 1m", "z 2m"));
    server.signal("HUP");
    backend.await_in_progress(3);
    server.configure(WORKERS, &site(&backend, "limit=2 timeout=20s"));
    server.signal("HUP");
    eventually("a limit of 2", || (server.get("/limit") == "limit=2 timeout=20s").then_some(()));
    backend.allow(1);
    backend.await_in_progress(2);
    assert_eq!(backend.count_most_anew(), 3);
    backend.allow(5);
    for (place, stream) in sent.into_iter().enumerate() {
        assert!(reply(stream).ends_with(&format!("\r\n\r\n/{place}")));
    }
    assert_eq!(backend.counts(|counts| (counts.most, counts.came.len())), (2, 6));
}

#[test]
fn a_request_that_waits_for_too_long_is_answered_with_408() {
    let backend = Backend::start();
    let server = Server::start(WORKERS, &site(&backend, "limit=1 timeout=100ms"));
    let first = send(&server, "/0");
    backend.await_in_progress(1);
    let late: Vec<TcpStream> = (0..4).map(|_| send(&server, "/late")).collect();
    for stream in late {
        assert!(reply(stream).starts_with("HTTP/1.1 408 "));
    }
    backend.allow(1);
    assert!(reply(first).ends_with("\r\n\r\n/0"));
    assert_eq!(backend.counts(|counts| counts.came.len()), 1);
}
