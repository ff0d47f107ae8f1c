//! As many connections as one process can have.

use std::fs;

use super::generator::load;
use super::server::backend::Backend;

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
fn fifteen_thousand_connections() {
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
