//! What a run is held to, and what `-q` leaves.

use std::fs;

use super::generator::{load, wrk};
use super::peer::{OK, Peer};
use super::server::backend::Backend;
use testing::Folder;

/// Ten requests, half of which are answered with 404 and 429.
fn half_bad() -> Peer {
    Peer::start(|mut client| {
        for status in ["200", "404", "200", "429", "200"].iter().cycle() {
            client.request()?;
            client.write(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
        }
        None
    })
}

#[test]
fn kept_expectations_are_success() {
    let peer = half_bad();
    let expected = "--expect errors<=40% --expect status(404)=2 --expect p50<1m --expect rate>0";
    let report = load(&format!("-n 10 -c 1 {expected} http://{}/", peer.address));
    assert_eq!(report.code, Some(0), "{report:#?}");
    let lines: Vec<_> = report.out.lines().skip_while(|line| *line != "Expectations:").collect();
    assert_eq!(lines.len(), 5, "{report:#?}");
    assert_eq!(lines[1], "  kept    errors<=40%    measured 40.0000%");
    assert_eq!(lines[2], "  kept    status(404)=2  measured 2");
    assert_eq!(report.errors(), [("status 404", 2), ("status 429", 2)], "{report:#?}");
}

#[test]
fn broken_expectations_have_their_own_exit_code() {
    let peer = half_bad();
    let folder = Folder::new();
    let json = folder.join("run.json").display().to_string();
    let expected = "--expect errors=0 --expect status(5xx)<1% --expect status(429)=0";
    let report = load(&format!("-n 10 -c 1 {expected} --json {json} http://{}/", peer.address));
    assert_eq!(report.code, Some(3), "{report:#?}");
    assert!(report.out.contains("\n  broken  errors=0        measured 4\n"), "{report:#?}");
    assert!(report.out.contains("\n  kept    status(5xx)<1%  measured 0.0000%\n"), "{report:#?}");
    assert_eq!(report.err.lines().last(), Some("weir load: 2 of 3 expectations broken"));
    let json = fs::read_to_string(json).unwrap();
    assert!(json.contains("\"status_codes\": {\"200\": 6, \"404\": 2, \"429\": 2}"), "{json}");
    let judged = "{\"expectation\": \"errors=0\", \"kept\": false, \"measured\": 4}";
    assert!(json.contains(judged), "{json}");
}

#[test]
fn expectations_apply_to_every_repeat() {
    let peer = half_bad();
    let options = "-n 10 -c 1 --repeat 3 --expect errors<1";
    let report = load(&format!("{options} http://{}/", peer.address));
    assert_eq!(report.code, Some(3), "{report:#?}");
    assert_eq!(report.out.matches("  broken  errors<1").count(), 3, "{report:#?}");
    let last = "weir load: expectations broken in 3 of 3 runs";
    assert_eq!(report.err.lines().last(), Some(last));
}

/// A server that is not there is an error, whatever was expected.
#[test]
fn an_unreachable_server_is_an_error_despite_expectations() {
    let report = load("--expect errors<1% http://127.0.0.1:1/");
    assert_eq!(report.code, Some(1), "{report:#?}");
    let peer = Peer::start(|mut client| client.request());
    let report = load(&format!("-n 10 --expect errors<1% http://{}/", peer.address));
    assert_eq!(report.code, Some(1), "{report:#?}");
    assert!(report.out.contains("  broken  errors<1%  measured 100.0000%\n"), "{report:#?}");
}

#[test]
fn quiet_leaves_results_and_errors() {
    let peer = half_bad();
    let url = format!("http://{}/", peer.address);
    let report = load(&format!("-q -n 10 -c 1 --repeat 2 --rate 100 {url}"));
    assert_eq!((report.code, report.err.as_str()), (Some(0), ""), "{report:#?}");
    assert_eq!(report.out.matches("\nRequests/sec: ").count(), 2, "{report:#?}");
    assert!(!report.out.contains("Running "), "{report:#?}");
    let report = load(&format!("-q -n 10 -c 1 --expect rate<0 --json - {url}"));
    assert_eq!(report.err, "weir load: 1 of 1 expectations broken\n");
    assert!(report.out.starts_with("{\"format\": ") && report.out.ends_with("}\n"), "{report:#?}");
}

#[test]
fn quiet_without_a_reply_is_only_the_error() {
    let peer = Peer::start(|mut client| client.request());
    let report = load(&format!("-q -n 10 -c 1 http://{}/", peer.address));
    assert_eq!((report.code, report.out.as_str()), (Some(1), ""), "{report:#?}");
    assert!(report.err.starts_with("weir load: no reply to any of "), "{report:#?}");
}

#[test]
fn percentiles_are_shown_where_they_mean_something() {
    let peer = Peer::answering(OK);
    let shown = |report: &super::generator::Report| {
        let lines = report.out.lines().skip_while(|line| *line != "  Latency Distribution").skip(1);
        let names = lines.map_while(|line| Some(line.split_once('%')?.0.trim().to_owned()));
        names.collect::<Vec<_>>().join(" ")
    };
    for (options, expected) in [
        ("", ""),
        ("--rate 1000", "50 75 90 99 99.9 99.99"),
        ("--latency", "50 75 90 99"),
        ("--percentiles 50,99.9,100", "50 99.9 100"),
        ("--rate 1000 --latency --percentiles 10", "10"),
    ] {
        let options = format!("-n 20 {options} http://{}/", peer.address);
        let report = load(&options);
        assert_eq!(shown(&report), expected, "{options}: {report:#?}");
        // wrk's text stays wrk's.
        let wrks = if options.contains("--latency") { "50 75 90 99" } else { "" };
        assert_eq!(shown(&wrk(&options)), wrks, "{options}");
    }
}

#[test]
fn a_user_in_a_url_is_sent_as_basic_authentication() {
    let peer = Peer::answering(OK);
    let options = format!("-n 4 -t 1 HTTP://me:p%40ss@{}/", peer.address);
    load(&format!("-q {options}")).assert_clean(4);
    let report = load(&options);
    let asked = peer.seen().last;
    assert!(asked.contains("\r\nAuthorization: Basic bWU6cEBzcw==\r\n"), "{asked}");
    assert!(!report.out.contains("p%40ss") && report.out.contains("me:***@"), "{report:#?}");
}

#[test]
fn two_servers_take_turns() {
    let backends = [Backend::start("--listen 0"), Backend::start("--listen 0 --error 100%")];
    let [a, b] = [0, 1].map(|which| format!("http://{}/", backends[which].address(0)));
    let folder = Folder::new();
    let json = folder.join("turns.json").display().to_string();
    let options = "-d 1200ms -c 3 -t 2 --turn 50ms --expect errors<1%";
    for (pace, unit) in [("", "requests/s  "), ("--rate 500", "500 requests/s by the clock")] {
        let report = load(&format!("{options} {pace} --json {json} --against {a} {b}"));
        // What is expected is expected of B.
        assert_eq!(report.code, Some(3), "{report:#?}");
        let opening = format!("Two servers in 24 turns of 50.00ms\n  A {a}\n  B {b}\n");
        assert!(report.out.starts_with(&opening) && report.out.contains(unit), "{report:#?}");
        // Nothing of one server is counted for the other.
        let failed = "\nfailed                      0.0000 %  100.0000 %\n";
        assert!(report.out.contains(failed), "{report:#?}");
        let noise = "\nThe noise is that between 6 blocks of four turns.\n";
        assert!(report.out.contains(noise), "{report:#?}");
        assert!(
            report.err.contains("\nB: Errors, each counted once:\n  status 500 "),
            "{report:#?}"
        );
        let text = fs::read_to_string(&json).unwrap();
        assert!(text.starts_with("{\"format\": \"weir load against 1\", "), "{text}");
        // It is null where a server was not asked once in a turn: the machine has other work.
        for part in ["{\"server\": \"a\", \"block\": 6, ", "\"effect\": {\"rate\": "] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // One that sees whether it is there, and those of six blocks; twice.
    let accepted = backends.each_ref().map(|backend| backend.stat("accepted"));
    assert_eq!(accepted, [2 * (1 + 6 * 3); 2]);
    assert!(load(&format!("compare {json} {json}")).err.contains("weir load against 1"));
}

/// What is on its way when a turn ends has its reply before the other server is asked.
#[test]
fn only_one_server_is_asked_at_a_time() {
    let backend = Backend::start("--listen 0 --sleep 5ms --listen 0");
    let [a, b] = [0, 1].map(|which| format!("http://{}/", backend.address(which)));
    let report = load(&format!("-q -d 1200ms -c 4 -t 1 --turn 50ms --against {a} {b}"));
    assert_eq!(report.code, Some(0), "{report:#?}");
    assert_eq!(backend.stat("highest"), 4, "{}", backend.stats());
}

#[test]
fn a_server_that_says_nothing_is_named() {
    let [ok, silent] = [Peer::answering(OK), Peer::start(|mut client| client.hold())];
    let urls = format!("--against http://{}/ http://{}/", ok.address, silent.address);
    let report = load(&format!("-d 300ms -c 2 -t 1 --turn 12ms --timeout 10ms {urls}"));
    assert_eq!(report.code, Some(1), "{report:#?}");
    let last = report.err.lines().last().unwrap();
    assert!(last.starts_with("weir load: B: no reply to any of "), "{report:#?}");
}

#[test]
fn turns_can_be_interrupted() {
    let peer = Peer::answering(OK);
    let url = format!("http://{}/", peer.address);
    let running = super::generator::start(&format!("-d 60s --turn 20ms --against {url} {url}"));
    peer.await_requests(100);
    let report = running.interrupt();
    assert_eq!(report.code, Some(0), "{report:#?}");
    assert!(report.err.contains("Interrupted: "), "{report:#?}");
}
