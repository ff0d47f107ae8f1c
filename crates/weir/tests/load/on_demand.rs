//! Turns that begin when the caller says so.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use super::generator::load;
use super::peer::{OK, Peer};
use testing::{eventually, kill};

/// The number behind a field's name.
fn number(json: &str, name: &str) -> f64 {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).expect(name);
    let end = rest.find([',', '}']).expect("something follows");
    rest[..end].trim().parse().expect(name)
}

#[test]
fn a_turn_for_each_line_cuts_no_request_off_and_keeps_its_connections() {
    let peer = Peer::answering(OK);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let url = format!("http://{}/", peer.address);
    command.args(["load", "--on-demand", "-q", "-t2", "-c3", "-d50ms", &url]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut orders = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut replies = 0;
    for _ in 0..3 {
        orders.write_all(b"\n").unwrap();
        let line = lines.next().unwrap().unwrap();
        assert!(number(&line, "steady_replies_per_s") > 0.0, "{line}");
        replies += number(&line, "replies") as u64;
    }
    drop(orders);
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none());
    let seen = peer.seen();
    assert_eq!((seen.requests, seen.connections), (replies, 3));
}

/// Standard input stays open: only the signal ends the wait for another turn.
#[test]
fn a_signal_ends_the_wait_for_a_turn() {
    let peer = Peer::answering(OK);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let url = format!("http://{}/", peer.address);
    command.args(["load", "--on-demand", "-q", "-c1", "-d10ms", &url]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut orders = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    orders.write_all(b"\n").unwrap();
    lines.next().unwrap().unwrap();
    kill(child.id() as i32, "INT");
    let status = eventually("the generator's end", || child.try_wait().unwrap());
    assert!(status.success());
    drop(orders);
}

#[test]
fn options_of_other_runs_are_refused() {
    for options in ["--against http://127.0.0.1:1/", "--requests 5", "--repeat 2", "--json x"] {
        let report = load(&format!("--on-demand {options} http://127.0.0.1:1/"));
        assert_eq!(report.code, Some(1), "{options}");
        assert!(report.err.contains("--on-demand cannot be combined with"), "{}", report.err);
    }
}
