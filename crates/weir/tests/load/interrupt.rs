//! Whoever interrupts a run sees what it has measured, at once.

use std::fs;
use std::net::TcpListener;

use super::generator::{Generator, start};
use super::peer::{OK, Peer};
use testing::eventually;

fn assert_interrupted(generator: Generator, least: u64) {
    let report = generator.interrupt();
    assert!(report.requests() >= least && report.failures() == 0, "{report:#?}");
    assert!(report.err.contains("Interrupted after "), "{report:#?}");
    assert!(report.out.contains("\nRequests/sec: "), "{report:#?}");
    assert_eq!(report.code, Some(0), "{report:#?}");
}

#[test]
fn an_interrupt_while_sending_prints_results() {
    for options in ["", "--close", "--rate 500", "-n 1000000000"] {
        let peer = Peer::answering(OK);
        let running =
            start(&format!("-d 60s --timeout 60s -t 2 {options} http://{}/", peer.address));
        peer.await_requests(100);
        assert_interrupted(running, 50);
    }
}

#[test]
fn an_interrupt_at_an_impossible_rate_prints_results() {
    let peer = Peer::answering(OK);
    let running =
        start(&format!("-d 60s --timeout 60s -t 1 -c 1 --rate 10M http://{}/", peer.address));
    // The clock's loop lets the clients run.
    peer.await_requests(100);
    assert_interrupted(running, 50);
}

#[test]
fn an_interrupt_while_the_server_is_silent_prints_results() {
    let peer = Peer::start(|mut client| {
        client.request()?;
        client.hold()
    });
    let running = start(&format!("-d 60s --timeout 60s http://{}/", peer.address));
    peer.await_requests(10);
    assert_interrupted(running, 0);
}

#[test]
fn an_interrupt_of_a_search_discards_the_current_step() {
    let peer = Peer::answering(OK);
    let words = format!("-d 1s -c 2 --search p99=1s http://{}/", peer.address);
    let mut running = start(&words);
    running.await_line("  rate ");
    let report = running.interrupt();
    // A step that was not over proves nothing.
    assert!(report.out.contains("  interrupted\nInterrupted before a rate was found.\n"));
    assert_eq!(report.code, Some(0), "{report:#?}");
}

#[test]
fn an_interrupt_while_connecting_prints_results() {
    // Nobody accepts: beyond the queue's length connections wait.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://{address}/");
    let mut running = start(&format!("-c 6000 -t 2 -d 60s --timeout 60s {url}"));
    running.await_opening();
    let open = format!("/proc/{}/fd", running.pid());
    eventually("open connections", || (fs::read_dir(&open).unwrap().count() > 5000).then_some(()));
    assert_interrupted(running, 0);
}
