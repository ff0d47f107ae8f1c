//! What cannot be done is said in a line, at once.

use std::net::TcpListener;
use std::process::Command;

use super::generator::{load, load_within, wrk};
use super::peer::{OK, Peer};

/// Command lines, and how the complaint begins.
const WRONG: &[(&str, &str)] = &[
    ("", "a URL is required"),
    ("-z http://127.0.0.1:1/", "unknown option -z"),
    ("--rates 5 http://127.0.0.1:1/", "unknown option --rates"),
    ("http://127.0.0.1:1/ -d", "--duration requires a value"),
    ("--close=1 http://127.0.0.1:1/", "--close takes no value"),
    ("-c 0 http://127.0.0.1:1/", "--connections: 0 is not between 1 and "),
    ("-n 0 http://127.0.0.1:1/", "--requests: 0 is not between 1 and "),
    ("-d 0 http://127.0.0.1:1/", "--duration: must be more than 0"),
    ("-d 5d http://127.0.0.1:1/", "--duration: \"5d\" is not a time, such as "),
    ("--timeout=-1s http://127.0.0.1:1/", "--timeout: \"-1s\" is not a time, such as "),
    ("--rate fast http://127.0.0.1:1/", "--rate: \"fast\" is not a number, such as "),
    ("--rate 0 http://127.0.0.1:1/", "--rate: must be more than 0"),
    ("--rate 5/1s http://127.0.0.1:1/", "--rate: a constant rate takes no duration"),
    (
        "--rate 5 --pipeline 2 http://127.0.0.1:1/",
        "--pipeline cannot be combined with --rate or --search",
    ),
    ("--close --pipeline 2 http://127.0.0.1:1/", "the requests per connection must be a multiple "),
    (
        "--per-connection 7 --pipeline 2 http://127.0.0.1:1/",
        "the requests per connection must be a multiple ",
    ),
    (
        "--search p99=1s --pipeline 2 http://127.0.0.1:1/",
        "--pipeline cannot be combined with --rate ",
    ),
    ("--search p99=1s --repeat 2 http://127.0.0.1:1/", "--search cannot be combined with --rate, "),
    ("--search p100=1s http://127.0.0.1:1/", "--search: \"p100=1s\" is not of the form p99="),
    ("-H nonsense http://127.0.0.1:1/", "--header: expected \"Name: value\""),
    ("-m G\u{20ac}T http://127.0.0.1:1/", "--method: \"G\u{20ac}T\" is not a valid name"),
    ("--weights 1,2 http://127.0.0.1:1/", "--weights requires one number per URL"),
    ("--weights 0 http://LISTENS/", "the sum of the weights must be between 1 and "),
    ("--from here http://127.0.0.1:1/", "--from: \"here\" is not an IP address"),
    ("--from ::1 http://LISTENS/", "--from: ::1 cannot connect to 127.0.0.1:"),
    ("--from 192.0.2.1 http://LISTENS/", "--from: 192.0.2.1: Cannot assign requested address"),
    ("--json /nowhere/a http://LISTENS/", "/nowhere/a: No such file or directory"),
    ("--hlog / http://LISTENS/", "/: Is a directory"),
    ("--list /nowhere http://LISTENS/", "/nowhere: No such file or directory"),
    ("--body-file /nowhere http://127.0.0.1:1/", "--body-file: /nowhere: No such file or "),
    ("-s /nowhere http://LISTENS/", "/nowhere: No such file or directory"),
    ("tcp://127.0.0.1:1", "tcp:// and udp:// require --body"),
    ("-b a -m PUT tcp://127.0.0.1:1", "tcp:// and udp:// cannot be combined with "),
    (
        "-b a --close udp://127.0.0.1:1",
        "udp:// cannot be combined with --close, --per-connection or --pipeline",
    ),
    ("127.0.0.1:1", "\"127.0.0.1:1\" is not a valid URL: the scheme is missing"),
    ("--percentiles 50,,99 http://127.0.0.1:1/", "--percentiles: \"\" is not a percentile, such "),
    ("--expect p99<20 http://127.0.0.1:1/", "--expect: \"20\" needs a unit of time, such as 20ms"),
    ("--expect speed>1 http://127.0.0.1:1/", "--expect: \"speed\" is not a quantity: pNN (p50, "),
    (
        "--search p99=1s --expect rate>1 http://127.0.0.1:1/",
        "--search cannot be combined with --expect",
    ),
    ("--turn 1s http://127.0.0.1:1/", "--turn requires --against"),
    ("--against here http://127.0.0.1:1/", "--against: \"here\" is not a valid URL"),
    (
        "--against tcp://127.0.0.1:2 http://127.0.0.1:1/",
        "--against requires exactly one other URL, of ",
    ),
    (
        "--against http://127.0.0.1:2/ -n 5 http://127.0.0.1:1/",
        "--against cannot be combined with --search, ",
    ),
    (
        "--against http://127.0.0.1:2/ --rate 1..2 http://127.0.0.1:1/",
        "--against requires a constant ",
    ),
    (
        "--against http://127.0.0.1:2/ --hlog a http://127.0.0.1:1/",
        "--against cannot be combined with --script ",
    ),
    ("--against http://LISTENS/ --turn 1s http://LISTENS/", "--against: 6 blocks of four turns "),
    ("--against http://127.0.0.1:1/ http://LISTENS/", "unable to connect to 127.0.0.1:1: "),
    ("http://a:%@127.0.0.1:1/", "\"http://a:***@127.0.0.1:1/\" is not a valid URL: invalid escape"),
    ("http://127.0.0.1:1/ http://127.0.0.1:2/", "all URLs must be on the same server"),
    ("http://127.0.0.1:1/", "unable to connect to 127.0.0.1:1: Connection refused"),
    ("http://255.255.255.255/", "unable to connect to 255.255.255.255:80: "),
    ("http://unix:/nowhere:/", "unable to connect to unix:/nowhere: No such file or "),
    ("http://no-such-name.invalid/", "unable to resolve no-such-name.invalid: "),
];

#[test]
fn every_complaint_is_a_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listens = listener.local_addr().unwrap().to_string();
    for (words, complaint) in WRONG {
        let report = load(&words.replace("LISTENS", &listens));
        assert_eq!((report.code, report.out.as_str()), (Some(1), ""), "{words}: {report:#?}");
        let mut lines = report.err.lines();
        let expected = format!("weir load: {complaint}");
        assert!(lines.next().unwrap().starts_with(&expected), "{words}: {report:#?}");
        // Whoever does not know the options may look for them.
        let more: Vec<&str> =
            lines.filter(|line| !line.starts_with("      did you mean")).collect();
        assert!(matches!(more[..], [] | ["(see weir load --help)"]), "{report:#?}");
    }
}

/// It is known before anything is opened, however many are asked for.
#[test]
fn too_many_connections_for_the_limit_are_refused_at_once() {
    for connections in [300, 100_000] {
        let report = load_within(256, &format!("-c {connections} -t 2 http://127.0.0.1:1/"));
        assert_eq!((report.code, report.out.as_str()), (Some(1), ""), "{report:#?}");
        let needed = connections + 28;
        let expected = format!(
            "weir load: {connections} connections need {needed} open files, but ulimit -n allows \
             only 256; raise it or use fewer connections (-c)\n"
        );
        assert_eq!(report.err, expected);
    }
}

#[test]
fn all_connections_that_the_limit_allows_can_be_used() {
    let peer = Peer::answering(OK);
    for options in ["-c 228 -t 2 -n 500", "-c 228 -t 2 --rate 1000 -n 500"] {
        load_within(256, &format!("{options} http://{}/", peer.address)).assert_clean(500);
    }
}

#[test]
fn threads_are_no_more_than_connections() {
    let peer = Peer::answering(OK);
    let report = load(&format!("-n 10 -c 1 http://{}/", peer.address));
    report.assert_clean(10);
    assert!(report.out.contains("\n  1 threads and 1 connections\n"), "{report:#?}");
    let report = wrk(&format!("-n 10 -c 1 http://{}/", peer.address));
    assert_eq!(report.code, Some(1), "{report:#?}");
    let expected = "wrk: number of connections must be >= threads\n";
    assert!(report.err.starts_with(expected), "{report:#?}");
}

#[test]
fn a_server_that_never_accepts_is_given_up() {
    // A datagram to a network that is set aside for documentation goes nowhere.
    let report = load("http://192.0.2.1/");
    assert_eq!(report.code, Some(1), "{report:#?}");
    assert!(report.err.starts_with("weir load: unable to connect to 192.0.2.1:80: "));
}

#[test]
fn an_error_that_cannot_be_printed_is_still_a_failure() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command.args(["load", "--nonsense"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn help_is_printed_to_standard_output() {
    let report = load("--help");
    assert_eq!((report.code, report.err.as_str()), (Some(0), ""));
    assert!(report.out.starts_with("Usage: weir load [OPTIONS] URL"), "{}", report.out);
}
