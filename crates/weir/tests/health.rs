//! Active checks are made once per process, and what they found outlives reloads.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use testing::{Peer, Server, eventually};

/// A backend that answers checks with a status, and clients with its name whatever that is.
struct Backend {
    address: SocketAddr,
    checks: Arc<Checks>,
}

#[derive(Default)]
struct Checks {
    made: AtomicUsize,
    /// Whether they wait for their reply.
    are_held: AtomicBool,
    /// How many checks wait for their reply.
    held: AtomicUsize,
}

impl Backend {
    fn start(name: &'static str, status: &'static str) -> Self {
        let checks = Arc::new(Checks::default());
        let shared = checks.clone();
        let peer = Peer::answering(move |request| {
            let is_check = request.starts_with("GET /check ");
            if is_check {
                shared.wait();
            }
            format!("HTTP/1.0 {}\n\n{name}", if is_check { status } else { "200 OK" })
        });
        Self { address: peer.address, checks }
    }

    fn checks(&self) -> usize {
        self.checks.made.load(SeqCst)
    }
}

impl Checks {
    fn wait(&self) {
        self.made.fetch_add(1, SeqCst);
        self.held.fetch_add(1, SeqCst);
        while self.are_held.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        self.held.fetch_sub(1, SeqCst);
    }
}

fn site(one: &Backend, two: &Backend, lines: &str) -> String {
    format!(
        "upstream u {{ server {}; server {}; keepalive 0; }}
         server {{ listen ADDRESS; location / {{ proxy_pass http://u; {lines} }} }}",
        one.address, two.address
    )
}

/// Whether only the well one of two is used.
fn avoids_the_sick(server: &Server) -> bool {
    (0..10).all(|_| server.get("/") == "well")
}

#[test]
fn servers_are_checked_once_per_process_and_stay_sick_over_reloads() {
    for globals in ["worker_processes 2;", "worker_processes 2; master_process off;"] {
        let (sick, well) = (Backend::start("sick", "503 Busy"), Backend::start("well", "200 OK"));
        let every = |lines: &str| {
            site(&sick, &well, &format!("health_check uri=/check interval=100ms {lines};"))
        };
        let server = Server::start_any(&format!("events {{}} {globals}"), &every(""));
        server.await_log("peer is unhealthy while checking status code", 1);
        assert!(avoids_the_sick(&server));

        // While one check of the sick waits for its reply, no worker makes another.
        sick.checks.are_held.store(true, SeqCst);
        let before = well.checks();
        eventually("ten checks", || (well.checks() >= before + 10).then_some(()));
        assert_eq!(sick.checks.held.load(SeqCst), 1);
        sick.checks.are_held.store(false, SeqCst);

        server.configure(globals, &every("fails=3"));
        server.reload();
        assert!(avoids_the_sick(&server));
        assert_eq!(server.log().matches("peer is unhealthy").count(), 1);
        let before = sick.checks();
        eventually("more checks", || (sick.checks() > before + 1).then_some(()));

        server.configure(globals, &site(&sick, &well, ""));
        server.reload();
        assert!((0..10).any(|_| server.get("/") == "sick"), "{globals}");
        let before = sick.checks();
        thread::sleep(Duration::from_millis(350));
        // One may have been under way.
        assert!(sick.checks() <= before + 1, "{globals}");
    }
}

#[test]
fn a_mandatory_check_after_a_reload_precedes_the_first_request() {
    let (sick, well) = (Backend::start("sick", "503 Busy"), Backend::start("well", "200 OK"));
    let server = Server::start("worker_processes 2;", &site(&sick, &well, ""));
    assert!((0..10).any(|_| server.get("/") == "sick"));
    server.configure(
        "worker_processes 2;",
        &site(&sick, &well, "health_check mandatory uri=/check interval=50ms fails=1000;"),
    );
    server.reload();
    server.await_log("peer is healthy while checking status code", 1);
    assert!(avoids_the_sick(&server));
    assert!(!server.log().contains("peer is unhealthy"));
}
