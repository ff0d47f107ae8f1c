//! `xtask retries`: requests through Weir to four backends, of which one after another is killed
//! and started again.
//!
//! Every request has a number. The backends count by it what they were sent, the clients look at
//! what they got and at what Weir says that it tried. Nothing is measured here.

mod backend;
mod client;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::project;
use crate::running::Running;
use backend::Backend;
use client::Client;

pub(crate) const HELP: &str = "prove that retries lose nothing and repeat nothing

usage: cargo xtask retries [--weir PATH] [--requests N] [--seconds N]

  --weir PATH   the program under test; built where none is named
  --requests N  how many, 20000 unless given
  --seconds N   at most so long, 120 unless given
";

/// As many as the promise says.
const BACKENDS: usize = 4;
const CLIENTS: usize = 16;
const KILL_EVERY: Duration = Duration::from_millis(40);
const DOWN: Duration = Duration::from_millis(20);

/// Runs the proof; an error says what was lost or repeated.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let requests = args.parsed("--requests", 20_000)?;
    let seconds = args.parsed("--seconds", 120)?;
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let tally = Arc::new(Tally::new(requests, Duration::from_secs(seconds)));
    let mut backends = Vec::new();
    for number in 0..BACKENDS {
        backends.push(Backend::start(number, &tally).map_err(|err| format!("backend: {err}"))?);
    }
    let running = Running::start(&weir, 2, &configuration(&backends))?;
    thread::scope(|scope| {
        scope.spawn(|| kill_in_turn(&mut backends, &tally));
        for number in 0..CLIENTS {
            let (tally, address) = (&tally, running.address);
            scope.spawn(move || Client::new(number, address, tally).run());
        }
    });
    tally.report(&running.log())
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
        tally.kills.fetch_add(1, Ordering::Relaxed);
        thread::sleep(DOWN);
        backends[number].revive();
        thread::sleep(KILL_EVERY - DOWN);
    }
}

/// What all of them know of each request, and what went wrong.
pub(crate) struct Tally {
    /// By number: how often it came, and [`BEGUN`].
    seen: Vec<AtomicU32>,
    next: AtomicUsize,
    clients: AtomicUsize,
    end: Instant,
    kills: AtomicUsize,
    /// More than one server was asked.
    retried: AtomicUsize,
    /// The reply had begun when its server was killed.
    cut: AtomicUsize,
    /// Not repeated, and told so.
    refused: AtomicUsize,
    succeeded: AtomicUsize,
    wrong: std::sync::Mutex<Vec<String>>,
    failed: AtomicBool,
}

/// The head of a reply has been sent for this request.
const BEGUN: u32 = 1 << 16;

/// So many are shown.
const WRONG_MAX: usize = 10;

impl Tally {
    fn new(requests: usize, time: Duration) -> Self {
        Self {
            seen: (0..requests).map(|_| AtomicU32::new(0)).collect(),
            next: AtomicUsize::new(0),
            clients: AtomicUsize::new(CLIENTS),
            end: Instant::now() + time,
            kills: AtomicUsize::new(0),
            retried: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            succeeded: AtomicUsize::new(0),
            wrong: std::sync::Mutex::new(Vec::new()),
            failed: AtomicBool::new(false),
        }
    }

    /// The number of the next request, while there is one.
    fn next(&self) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.seen.len() && Instant::now() < self.end).then_some(number)
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
        self.failed.store(true, Ordering::Relaxed);
        let mut wrong = self.wrong.lock().expect("no thread panics with it");
        if wrong.len() < WRONG_MAX {
            wrong.push(what);
        }
    }

    fn report(&self, log: &str) -> Result<(), String> {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let asked = count(&self.next).min(self.seen.len());
        println!(
            "{asked} requests, {} kills: {} answered, {} of them by another server, {} cut off in \
             their reply, {} refused since they are not repeated",
            count(&self.kills),
            count(&self.succeeded),
            count(&self.retried),
            count(&self.cut),
            count(&self.refused),
        );
        if self.failed.load(Ordering::Relaxed) {
            let wrong = self.wrong.lock().expect("no thread panics with it");
            let told = wrong.iter().flat_map(|what| {
                let number = what.split(' ').nth(1).unwrap_or_default().trim_end_matches(',');
                let request = format!("?{number} ");
                let lines = log.lines().filter(move |line| line.contains(&request));
                std::iter::once(what.clone()).chain(lines.map(|line| format!("  {line}")))
            });
            return Err(told.collect::<Vec<_>>().join("\n"));
        }
        if count(&self.retried) == 0 {
            return Err("nothing was retried, so nothing was proven".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(play: impl Fn(&Tally)) -> usize {
        let tally = Tally::new(2, Duration::ZERO);
        play(&tally);
        tally.wrong.into_inner().unwrap().len()
    }

    #[test]
    fn what_is_repeated_and_must_not_be_is_seen() {
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
}
