//! `xtask reloads`: one reload after another, while WebSocket sessions and connections are open.
//!
//! No session may be cut, no request may fail, and what a configuration took must go with it: the
//! memory and the descriptors of the process that serves are looked at. A large map makes each
//! generation heavy, and it has several logs, to which every worker writes.

mod backend;
mod client;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::project;
use crate::running::Running;

pub(crate) const HELP: &str = "prove that reloads cut nothing, fail nothing and leak nothing

usage: cargo xtask reloads [--weir PATH] [--reloads N]

  --weir PATH   the program under test; built where none is named
  --reloads N   how many, one every 100 ms, 100 unless given
";

const EVERY: Duration = Duration::from_millis(100);
const SESSIONS: usize = 50;
const CONNECTIONS: usize = 200;
const WORKERS: usize = 4;

/// How long the newest configuration may take to hold, after the last reload.
const SETTLED_MAX: Duration = Duration::from_secs(20);

/// What the allocator may keep on top, in KiB; a generation that stays takes more than a tenth of
/// it.
const GROWTH_MAX_KB: u64 = 8 * 1024;

/// Connections that come and go: descriptors that the process may have more at the end.
const DESCRIPTORS_GROWTH_MAX: usize = 120;

/// Entries of the map that makes a generation heavy.
const MAP_ENTRIES: usize = 5000;

/// Runs the proof; an error says what was cut, failed or stayed.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let reloads: usize = args.parsed("--reloads", 100)?;
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let backend = backend::start().map_err(|err| format!("backend: {err}"))?;
    let http = |number: usize| configuration(&backend.to_string(), number);
    let running = Running::start(&weir, WORKERS, &http(0))?;
    let tally = Tally::default();
    let grown = thread::scope(|scope| {
        for number in 0..SESSIONS {
            let (tally, address) = (&tally, running.address);
            scope.spawn(move || client::converse(number, address, tally));
        }
        for number in 0..CONNECTIONS {
            let (tally, address) = (&tally, running.address);
            scope.spawn(move || client::ask_on(number, address, tally));
        }
        let result = reload_often(&running, &tally, reloads, http);
        tally.ended.store(true, Ordering::SeqCst);
        result
    })?;
    tally.report(reloads, grown, &running.log())
}

fn configuration(backend: &str, number: usize) -> String {
    let mut map = String::new();
    for entry in 0..MAP_ENTRIES {
        let _ = writeln!(map, "entry-{entry}-of-{number} \"value {entry} of {number}\";");
    }
    format!(
        "map_hash_max_size 65536;
         map $arg_x $mapped {{ {map} }}
         upstream u {{ server {backend}; keepalive 16; }}
         open_log_file_cache max=8;
         server {{
             listen ADDRESS;
             root DIR;
             access_log plain.log; access_log buffered.log combined buffer=32k flush=1s;
             access_log packed.log.gz combined gzip; access_log named$arg_x.log;
             keepalive_requests 1000000;
             location = /number {{ return 200 \"{number}$mapped\\n\"; }}
             location / {{
                 proxy_pass http://u;
                 proxy_set_header Upgrade $http_upgrade;
                 proxy_set_header Connection $http_connection;
             }}
         }}"
    )
}

/// What the process that serves takes.
struct Taken {
    memory_kb: u64,
    descriptors: usize,
}

/// The same after a fifth of the reloads, and at the end.
struct Grown(Taken, Taken);

fn reload_often(
    running: &Running,
    tally: &Tally,
    reloads: usize,
    http: impl Fn(usize) -> String,
) -> Result<Grown, String> {
    let mut early = taken(running)?;
    for number in 1..=reloads {
        let begun = Instant::now();
        running.configure(WORKERS, &http(number))?;
        running.signal("HUP")?;
        if number == reloads.div_ceil(5) {
            early = taken(running)?;
        }
        thread::sleep(EVERY.saturating_sub(begun.elapsed()));
    }
    let end = Instant::now() + SETTLED_MAX;
    let newest = format!("{reloads}\n");
    while client::get(running.address, "/number").as_deref() != Some(&newest) {
        if Instant::now() > end {
            return Err(format!("the last configuration does not hold after {SETTLED_MAX:?}"));
        }
        thread::sleep(EVERY);
    }
    // Whatever began before has gone by now; what stays, stays.
    tally.all_heard()?;
    Ok(Grown(early, taken(running)?))
}

fn taken(running: &Running) -> Result<Taken, String> {
    let process = running.worker_process().ok_or("no worker process in the log")?;
    let failed = |err| format!("the worker process: {err}");
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).map_err(failed)?.count();
    Ok(Taken { memory_kb: resident_kb(process)?, descriptors })
}

fn resident_kb(process: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))
        .map_err(|err| format!("the worker process: {err}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kb.ok_or_else(|| "no VmRSS".to_owned())
}

/// What the clients saw.
#[derive(Default)]
pub(crate) struct Tally {
    ended: AtomicBool,
    requests: AtomicUsize,
    frames: AtomicUsize,
    /// Connections that the server closed, having said so.
    closed: AtomicUsize,
    /// By session, frames that came back.
    heard: Mutex<Vec<usize>>,
    wrong: Mutex<Vec<String>>,
}

/// So many are shown.
const WRONG_MAX: usize = 10;

impl Tally {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn complain(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("no thread panics with it");
        if wrong.len() < WRONG_MAX {
            wrong.push(what);
        }
    }

    fn hear(&self, session: usize) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        let mut heard = self.heard.lock().expect("no thread panics with it");
        if heard.len() <= session {
            heard.resize(session + 1, 0);
        }
        heard[session] += 1;
    }

    /// Whether every session is still alive, which the next frames of all of them tell.
    fn all_heard(&self) -> Result<(), String> {
        let now = || self.heard.lock().expect("no thread panics with it").clone();
        let (before, end) = (now(), Instant::now() + SETTLED_MAX);
        let live = || {
            let after = now();
            after.len() == SESSIONS
                && (0..SESSIONS).all(|at| before.get(at).is_none_or(|b| after[at] > *b))
        };
        while !live() {
            if Instant::now() > end {
                let wrong = self.wrong.lock().expect("no thread panics with it").join("\n");
                return Err(format!("not every session is alive at the end\n{wrong}"));
            }
            thread::sleep(EVERY);
        }
        Ok(())
    }

    fn report(&self, reloads: usize, grown: Grown, log: &str) -> Result<(), String> {
        let Grown(early, late) = grown;
        println!(
            "{reloads} reloads, {SESSIONS} sessions with {} frames, {CONNECTIONS} connections with \
             {} requests, {} closed by the server as announced; {} KiB and {} descriptors after a \
             fifth, {} KiB and {} descriptors at the end",
            self.frames.load(Ordering::Relaxed),
            self.requests.load(Ordering::Relaxed),
            self.closed.load(Ordering::Relaxed),
            early.memory_kb,
            early.descriptors,
            late.memory_kb,
            late.descriptors,
        );
        let mut wrong = self.wrong.lock().expect("no thread panics with it").clone();
        let grave = |line: &&str| {
            ["[error]", "[crit]", "[alert]", "[emerg]"].iter().any(|level| line.contains(level))
        };
        wrong.extend(log.lines().filter(grave).take(WRONG_MAX).map(str::to_owned));
        if late.memory_kb > early.memory_kb + GROWTH_MAX_KB {
            let grown_kb = late.memory_kb - early.memory_kb;
            wrong.push(format!("the worker process grew by {grown_kb} KiB"));
        }
        if late.descriptors > early.descriptors + DESCRIPTORS_GROWTH_MAX {
            let grown = late.descriptors - early.descriptors;
            wrong.push(format!("the worker process has {grown} descriptors more"));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}
