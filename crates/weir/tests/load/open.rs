//! Open loops: requests start by the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::generator::{IMPOSSIBLE, load, load_within, start};
use super::peer::{OK, Peer};

#[test]
fn the_number_of_requests_follows_the_rate() {
    let options = [
        "--rate 500 -d 1s",
        "--rate 0..400/1s -d 1s",
        "--rate 100..0/1s -d 2s",
        "--rate 50..150/500ms -d 1s",
    ];
    let expected = [500, 200, 50, 50 + 75];
    let peers = options.map(|_| Peer::answering(OK));
    let runs: Vec<_> = std::iter::zip(options, &peers)
        .map(|(options, peer)| start(&format!("{options} -c 8 -t 3 http://{}/", peer.address)))
        .collect();
    for (((running, expected), peer), options) in
        runs.into_iter().zip(expected).zip(&peers).zip(options)
    {
        let report = running.end();
        let requests = report.requests();
        report.assert_clean(requests);
        assert!(requests.abs_diff(expected) <= 1, "{options}: {report:#?}");
        assert_eq!(peer.seen().requests, requests, "{options}");
        assert!(report.err.contains("\nOpen loop: "), "{report:#?}");
    }
}

#[test]
fn a_number_of_requests_keeps_to_the_rate() {
    let peer = Peer::answering(OK);
    let report = load(&format!("--rate 1000 -n 301 -c 8 -t 3 http://{}/", peer.address));
    report.assert_clean(301);
    assert_eq!(peer.seen().requests, 301);
    // That many take so long at that rate: the last one has its time, too.
    assert!(report.rate() <= 1000.0, "{report:#?}");
}

#[test]
fn a_ramp_that_is_cut_short_says_how_far_it_got() {
    let peer = Peer::answering(OK);
    let report = load(&format!("--rate 100..1000/2s -d 500ms http://{}/", peer.address));
    assert!(report.err.contains("\nOpen loop: 100 to 325 requests/s requested, "), "{report:#?}");
}

#[test]
fn latency_includes_the_delay_before_sending() {
    let has_slept = AtomicBool::new(false);
    let peer = Peer::start(move |mut client| {
        while client.request().is_some() {
            if !has_slept.swap(true, Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(300));
            }
            client.write(OK)?;
        }
        Some(())
    });
    let url = format!("http://{}/", peer.address);
    let report = load(&format!("--rate 100 -n 40 -c 1 -t 1 --latency {url}"));
    report.assert_clean(40);
    // 30 of 40 start in the pause: half of all wait for 100 ms or longer, in a closed loop one.
    let median = report.out.lines().find_map(|line| line.trim().strip_prefix("50%")).unwrap();
    let ms: f64 = median.trim().strip_suffix("ms").unwrap().parse().unwrap();
    assert!(ms >= 50.0, "{report:#?}");
}

#[test]
fn descriptors_that_run_out_cost_requests_and_not_the_run() {
    let peer = Peer::start(|mut client| {
        client.request()?;
        thread::sleep(Duration::from_millis(50));
        client.write(OK)
    });
    let options = "--close --rate 3000 -d 500ms --timeout 300ms -c 100";
    let report = load_within(64, &format!("{options} http://{}/", peer.address));
    assert_eq!(report.code, Some(0), "{report:#?}");
    assert!(report.requests() > 0 && report.error(IMPOSSIBLE) > 0, "{report:#?}");
}

#[test]
fn unsent_requests_are_reported() {
    let peer = Peer::start(|mut client| {
        client.request()?;
        client.hold()
    });
    let url = format!("http://{}/", peer.address);
    let report = load(&format!("--rate 100 -d 500ms -c 2 -t 1 --timeout 200ms {url}"));
    let unsent = report.err.lines().find(|line| line.contains("due but not sent"));
    let unsent: u64 = unsent.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let seen = peer.seen().requests;
    // Those on their way at the very end are neither.
    assert!((48..=50).contains(&(seen + unsent)), "{seen} seen, {report:#?}");
    assert_eq!(report.requests(), 0, "{report:#?}");
}
