//! As many connections as one process can have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, thread};

use super::generator::{load, start};
use super::peer::Peer;
use super::server::backend::Backend;
use testing::{Folder, eventually};

const CONNECTIONS: u64 = 15_000;
/// Descriptors that a process has besides.
const OTHERS: u64 = 100;

/// How many descriptors a process may have.
fn descriptors_max() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    match line.split_whitespace().nth(4).unwrap() {
        "unlimited" => u64::MAX,
        hard => hard.parse().unwrap(),
    }
}

#[test]
fn a_run_may_have_fifteen_thousand_connections() {
    let most = descriptors_max();
    if most < CONNECTIONS + OTHERS {
        println!("skipped: a process may have {most} descriptors (ulimit -Hn)");
        return;
    }
    let backend = Backend::start("--listen 0 --threads 2");
    let options = format!("-n 30000 -c {CONNECTIONS} -t 2 --timeout 15s");
    let report = load(&format!("{options} http://{}/", backend.address(0)));
    report.assert_clean(30_000);
    // One more to see whether anybody is there, and one that asks.
    let accepted = backend.stat("accepted");
    assert!((CONNECTIONS..=CONNECTIONS + 2).contains(&accepted), "{accepted}");
    assert_eq!(backend.stat("requests"), 30_000);
}

#[test]
fn connections_share_one_copy_of_a_large_body() {
    const BODY: usize = 8 << 20;
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let peer = Peer::start(move |client| {
        count.fetch_add(u64::from(client.connection.is_asked()), Ordering::Relaxed);
        // What comes is not read, and the connection stays.
        loop {
            thread::park();
        }
    });
    let folder = Folder::new();
    folder.write("body", "x".repeat(BODY));
    let body = folder.join("body").display().to_string();
    let running = start(&format!("-d 60s -c 30 --body-file {body} http://{}/", peer.address));
    eventually("requests", || (asked.load(Ordering::Relaxed) == 30).then_some(()));
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes * 1024 < 15 * BODY, "{most}");
}
