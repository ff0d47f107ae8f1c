//! Requests through Weir to four backends, of which one after another is killed and started again:
//! nothing is lost that may be repeated, and nothing is repeated that must not be.
//!
//! Every request has a number. The backends count by it what they were sent, the clients look at
//! what they got and at what Weir says that it tried. `WEIR_RETRIES=1000000` in the environment
//! makes it a long proof.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "retries/backend.rs"]
mod backend;
#[path = "retries/client.rs"]
mod client;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use backend::Backend;
use client::Client;
use testing::Server;

const REQUESTS: usize = 4000;
const BACKENDS: usize = 4;
const CLIENTS: usize = 16;
const KILL_EVERY: Duration = Duration::from_millis(40);
const DOWN: Duration = Duration::from_millis(20);

#[test]
fn retries_lose_nothing_and_repeat_nothing() {
    let requests = std::env::var("WEIR_RETRIES").map_or(REQUESTS, |number| number.parse().unwrap());
    let tally = Arc::new(Tally::new(requests));
    let backends = (0..BACKENDS).map(|number| Backend::start(number, &tally).unwrap());
    let mut backends: Vec<_> = backends.collect();
    let server = Server::start("worker_processes 2;", &configuration(&backends));
    thread::scope(|scope| {
        scope.spawn(|| kill_in_turn(&mut backends, &tally));
        for number in 0..CLIENTS {
            let (tally, address) = (&tally, server.address);
            scope.spawn(move || Client::new(number, address, tally).run());
        }
    });
    tally.judge(&server.log());
}

fn configuration(backends: &[Backend]) -> String {
    let servers: String =
        backends.iter().map(|one| format!("server {} max_fails=0;\n", one.address)).collect();
    format!(
        "upstream u {{ {servers} keepalive 8; }}
         add_header X-Tries \"$upstream_addr|$upstream_bytes_sent|$upstream_status\" always;
         proxy_connect_timeout 2s;
         server {{
             listen ADDRESS;
             keepalive_requests 1000000;
             location / {{ proxy_pass http://u; }}
             location /all/ {{
                 proxy_next_upstream error timeout non_idempotent;
                 proxy_pass http://u;
             }}
         }}"
    )
}

fn kill_in_turn(backends: &mut [Backend], tally: &Tally) {
    for number in (0..backends.len()).cycle() {
        if tally.is_over() {
            return;
        }
        backends[number].kill();
        thread::sleep(DOWN);
        backends[number].revive();
        thread::sleep(KILL_EVERY - DOWN);
    }
}

/// What all of them know of each request, and what went wrong.
pub struct Tally {
    /// By number: how often it came, and [`BEGUN`].
    seen: Vec<AtomicU32>,
    requests: usize,
    next: AtomicUsize,
    clients: AtomicUsize,
    /// More than one server was asked.
    retried: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

/// The head of a reply has been sent for this request.
const BEGUN: u32 = 1 << 16;

/// The number of failures to print.
const WRONG_MAX: usize = 10;

/// Where nothing was retried, there are more requests, up to so many times as many.
const MORE_MAX: usize = 50;

impl Tally {
    fn new(requests: usize) -> Self {
        Self {
            seen: (0..requests * MORE_MAX).map(|_| AtomicU32::new(0)).collect(),
            requests,
            next: AtomicUsize::new(0),
            clients: AtomicUsize::new(CLIENTS),
            retried: AtomicUsize::new(0),
            wrong: Mutex::default(),
        }
    }

    /// The number of the next request, while there is one.
    fn next(&self) -> Option<usize> {
        let is_enough = |number: usize| {
            let retried = self.retried.load(Ordering::Relaxed) > 0;
            number >= self.requests && retried || number >= self.seen.len()
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (!is_enough(number)).then_some(number)
    }

    /// A backend was sent this one; `repeats`: it may be, again.
    fn came(&self, number: usize, repeats: bool) {
        let Some(seen) = self.seen.get(number) else { return };
        let before = seen.fetch_add(1, Ordering::SeqCst);
        if before & BEGUN != 0 {
            self.complain(format!("request {number} came again after the head of its reply"));
        } else if before != 0 && !repeats {
            self.complain(format!("request {number} came again, and must not"));
        }
    }

    fn begin(&self, number: usize) {
        if let Some(seen) = self.seen.get(number) {
            seen.fetch_or(BEGUN, Ordering::SeqCst);
        }
    }

    fn has_begun(&self, number: usize) -> bool {
        self.seen.get(number).is_some_and(|seen| seen.load(Ordering::SeqCst) & BEGUN != 0)
    }

    fn is_over(&self) -> bool {
        self.clients.load(Ordering::Relaxed) == 0
    }

    fn complain(&self, what: String) {
        let mut wrong = self.wrong.lock().unwrap();
        if wrong.len() < WRONG_MAX {
            wrong.push(what);
        }
    }

    fn judge(&self, log: &str) {
        let wrong = self.wrong.lock().unwrap();
        let told = wrong.iter().flat_map(|what| {
            let number = what.split(' ').nth(1).unwrap_or_default().trim_end_matches(',');
            let request = format!("?{number} ");
            let lines = log.lines().filter(move |line| line.contains(&request));
            std::iter::once(what.clone()).chain(lines.map(|line| format!("  {line}")))
        });
        let told: Vec<_> = told.collect();
        assert!(told.is_empty(), "{}", told.join("\n"));
        assert!(self.retried.load(Ordering::Relaxed) > 0, "nothing was retried");
    }
}

fn complaints(play: impl Fn(&Tally)) -> usize {
    let tally = Tally::new(2);
    play(&tally);
    tally.wrong.into_inner().unwrap().len()
}

#[test]
fn the_tally_reports_forbidden_repetitions() {
    let once = |tally: &Tally| {
        tally.came(0, false);
        tally.came(1, false);
    };
    assert_eq!(complaints(once), 0);
    let twice = |tally: &Tally| {
        tally.came(1, false);
        tally.came(1, false);
    };
    assert_eq!(complaints(twice), 1);
    assert_eq!(complaints(|tally| (0..5).for_each(|_| tally.came(1, true))), 0);
    let after_the_reply = |tally: &Tally| {
        tally.came(1, true);
        tally.begin(1);
        tally.came(1, true);
    };
    assert_eq!(complaints(after_the_reply), 1);
}
