use super::*;
use crate::results::testing::{moments, results};

/// A run with something of everything.
fn run() -> Results {
    let mut run = results();
    run.urls.push("http://h/\"a\"\u{1}".into());
    run.pace = LoadKind::Open { from: 10.0, to: 2000.5 };
    run.elapsed = Duration::from_nanos(10_000_123_457);
    run.interrupted = true;
    run.seconds = moments([(1.0, 10, 1234), (2.001, 0, 1), (3.5, 7, 5_000_000)]);
    let tally = &mut run.tally;
    *tally = RunStats { replies: 3, bytes: 5, ..RunStats::default() };
    for (status, count) in [(101, 1), (200, 1), (206, 1), (301, 3), (404, 4), (503, 5)] {
        tally.statuses.add(status, count);
    }
    tally.unsent = 9;
    for (n, (_, count)) in (1..).zip(tally.errors.named_mut()) {
        *count = n;
    }
    for value in [0, 1, 2047, 2048, 1_000_001, WHOLE_MAX] {
        tally.latency_us.record_n(value, 3).unwrap();
    }
    tally.rate.record(70_000).unwrap();
    tally.lateness_us.record(12).unwrap();
    run
}

/// Runs have no equality of their own; this shows every field.
fn shown(runs: &[Results]) -> String {
    runs.iter().map(|run| format!("{run:?}\n")).collect()
}

#[test]
fn what_is_written_is_read_back() {
    for runs in [vec![run()], vec![run(), results(), run()], vec![]] {
        let text = write(&runs);
        let read = read(text.as_bytes()).unwrap();
        // Histograms grow differently; what they hold is compared by the text.
        assert_eq!(write(&read), text);
        let plain = |runs: &[Results]| {
            let mut runs = runs.to_vec();
            for run in &mut runs {
                run.tally.latency_us = histogram();
                run.tally.rate = histogram();
                run.tally.lateness_us = histogram();
                run.seconds.iter_mut().for_each(|moment| moment.packed.clear());
            }
            shown(&runs)
        };
        assert_eq!(plain(&read), plain(&runs));
        for (read, run) in read.iter().zip(&runs) {
            assert_eq!(read.tally.latency_us, run.tally.latency_us);
            assert_eq!(read.tally.rate, run.tally.rate);
            assert_eq!(read.tally.lateness_us, run.tally.lateness_us);
        }
    }
}

/// What is replaced by what, and what is then said.
const BAD: [(&str, &str, &str); 18] = [
    ("weir load 1", "weir load 2", ".format: expected \"weir load 1\""),
    ("\"threads\"", "\"thread\"", ".threads is missing"),
    (
        "\"threads\": 2",
        "\"threads\": 2.5",
        ".threads: expected a whole number, or the number is too large",
    ),
    (
        "\"threads\": 2",
        "\"threads\": -2",
        ".threads: expected a whole number, or the number is too large",
    ),
    (
        "\"threads\": 2",
        "\"threads\": 1e17",
        ".threads: expected a whole number, or the number is too large",
    ),
    ("\"cpu_s\": 0.5", "\"cpu_s\": 1e99", ".cpu_s is too long"),
    ("\"cpu_s\": 0.5", "\"cpu_s\": null", ".cpu_s: expected a number of 0 or more"),
    ("[0, 1, 2, 3, 4, 5]", "[0, 1]", ".statuses: expected six numbers"),
    ("[0, 1, 2, 3, 4, 5]", "[0, 1, 2, 3, 4, 4]", ".status_codes: more responses than in .statuses"),
    ("\"404\": 4", "\"0404\": 4", ".status_codes.0404: expected a status"),
    ("\"404\": 4", "\"1000\": 4", ".status_codes.1000: expected a status"),
    (
        "\"404\": 4",
        "\"404\": 0.5",
        ".status_codes.404: expected a whole number, or the number is too large",
    ),
    (
        "\"reset\": 4",
        "\"reset\": \"4\"",
        ".errors.reset: expected a whole number, or the number is too large",
    ),
    ("\"interrupted\": true", "\"interrupted\": 1", ".interrupted: expected true or false"),
    ("{\"at\": 1,", "{", ".seconds[0].at is missing"),
    ("[[70015, 1]]", "[[70015]]", ".thread_rate.counts: expected [value, count]"),
    ("[[70015, 1]]", "[[70015, 0]]", ".thread_rate.counts: invalid count"),
    ("{\"from\": 10,", "{", ".pace.from is missing"),
];

#[test]
fn what_is_refused() {
    let text = write(&[run()]);
    for (good, bad, expected) in BAD {
        assert!(text.contains(good), "{good} in {text}");
        let error = read(text.replacen(good, bad, 1).as_bytes()).unwrap_err();
        assert_eq!(error, expected);
    }
    let two = write(&[run(), run()]);
    let at = two.rfind("cpu_s").unwrap();
    let error = read(format!("{}x{}", &two[..at], &two[at..]).as_bytes()).unwrap_err();
    assert_eq!(error, "run 2: .cpu_s is missing");
    assert_eq!(read(b"1").unwrap_err(), "expected an object");
}

#[test]
fn unknown_fields_are_left_alone() {
    let text = write(&[run()]);
    let more = text.replacen("{\"format\"", "{\"server\": {\"cpu\": [1]}, \"format\"", 1);
    assert_eq!(write(&read(more.as_bytes()).unwrap()), text);
}

/// Files of the first version know no more than classes.
#[test]
fn files_without_exact_statuses_are_read() {
    let text = write(&[run()]);
    let (before, rest) = text.split_once("\"status_codes\": ").unwrap();
    let (_, after) = rest.split_once("}, ").unwrap();
    let read = read(format!("{before}{after}").as_bytes()).unwrap();
    let statuses = &read[0].tally.statuses;
    assert_eq!((statuses.classes(), statuses.codes()), ([0, 1, 2, 3, 4, 5], &[][..]));
    assert_eq!(read[0].tally.bad_statuses(), 9);
}

/// What became of expectations follows from the rest, and is not read back.
#[test]
fn expectations_are_written() {
    let judged = |kept, measured| Judged {
        expectation: "p99<20ms".into(),
        kept,
        measured,
        shown: "1.50ms".into(),
    };
    let mut run = run();
    run.judged = vec![judged(true, Some(1500.5)), judged(false, None)];
    let text = write(&[run]);
    let expected = "\"expectations\": [{\"expectation\": \"p99<20ms\", \"kept\": true, \
                    \"measured\": 1500.5}, {\"expectation\": \"p99<20ms\", \"kept\": false, \
                    \"measured\": null}]}\n";
    assert!(text.ends_with(expected), "{text}");
    assert!(read(text.as_bytes()).unwrap()[0].judged.is_empty());
}

/// Two counts of one value are one; of too many there is an error, not an overflow.
#[test]
fn counts_add_up() {
    let counts = |text: &str| {
        let json = parse::parse(format!("{{\"counts\": {text}}}").as_bytes()).unwrap();
        histogram_from(&json).map(|histogram| histogram.len())
    };
    assert_eq!(counts("[[1, 2], [1, 3], [0, 1]]"), Ok(6));
    assert!(counts("[[1, 9007199254740992], [2, 1]]").is_err());
}
