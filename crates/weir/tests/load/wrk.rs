//! Called `wrk` it says what wrk says, and no more.

use super::generator::wrk;
use super::peer::{OK, Peer};

/// What every line begins with, in their order.
const LINES: [&str; 7] = [
    "Running 1s test @ http://127.0.0.1:",
    "  2 threads and 4 connections",
    "  Thread Stats   Avg      Stdev     Max   +/- Stdev",
    "    Latency  ",
    "    Req/Sec  ",
    "  ",
    "Requests/sec: ",
];

#[test]
fn wrk_prints_only_the_text_of_wrk() {
    let peer = Peer::answering(OK);
    let report = wrk(&format!("-t2 -c4 -d1s http://{}/", peer.address));
    report.assert_clean(report.requests());
    let lines: Vec<&str> = report.out.lines().collect();
    assert_eq!(lines.len(), LINES.len() + 1, "{report:#?}");
    for (line, begin) in lines.iter().zip(LINES) {
        assert!(line.starts_with(begin), "{line}: {report:#?}");
    }
    assert!(lines[7].starts_with("Transfer/sec: "), "{report:#?}");
    assert_eq!(report.err, "");
    assert!(peer.seen().requests >= report.requests());
}

#[test]
fn wrk_prints_latencies_only_on_request() {
    let peer = Peer::answering(OK);
    let report = wrk(&format!("-t2 -c4 -n 100 --latency http://{}/", peer.address));
    report.assert_clean(100);
    let (_, rest) = report.out.split_once("\n  Latency Distribution\n").unwrap();
    let begins = ["     50%", "     75%", "     90%", "     99%", "  100 requests in "];
    assert!(rest.lines().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{rest}");
    assert!(!report.out.contains("Closed loop"), "{report:#?}");
}

#[test]
fn wrk_fails_as_weir_load_does() {
    let peer = Peer::answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let report = wrk(&format!("-t1 -c1 -n 10 http://{}/", peer.address));
    assert_eq!((report.code, report.bad_statuses()), (Some(0), Some(10)), "{report:#?}");
    assert!(report.out.contains("\n  Non-2xx or 3xx responses: 10\nRequests/sec: "));
    let peer = Peer::start(|mut client| client.request());
    let report = wrk(&format!("-t1 -c1 -n 10 http://{}/", peer.address));
    assert_eq!((report.code, report.socket_errors()), (Some(1), Some([0, 10, 0, 0])));
    let report = wrk("http://127.0.0.1:1/");
    assert_eq!((report.code, report.out.as_str()), (Some(1), ""));
    assert!(report.err.starts_with("wrk: unable to connect to 127.0.0.1:1"), "{report:#?}");
}

#[test]
fn wrk_prints_its_version() {
    let report = wrk("-v");
    assert_eq!((report.code, report.err.as_str()), (Some(0), ""), "{report:#?}");
    assert!(report.out.contains("wrk 4.2.0"), "{report:#?}");
}
