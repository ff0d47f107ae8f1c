use std::time::Duration;

use super::record::COUNT_MAX;
use super::*;
use crate::results::histogram::histogram;
use crate::results::testing::{moments, results};
use crate::results::{ComparedSide, Judged, LoadKind, MeasuredTurn, RunStats, TurnBlock, Turns};

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
    for value in [0, 1, 2047, 2048, 1_000_001] {
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
        // Histograms with equal values can differ in size, so their text is compared.
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
const BAD: [(&str, &str, &str); 20] = [
    ("weir load 1", "weir load 2", "the format is \"weir load 2\", expected \"weir load 1\""),
    (
        "weir load 1",
        "weir load against 1",
        "the format is \"weir load against 1\": this file already contains a comparison, in \
         .effect at line 1 column ",
    ),
    ("\"threads\"", "\"thread\"", "missing field `threads` at line 1 column "),
    ("\"handshake\": 3, \"reset\"", "\"no\"", "missing field `reset` at line 1 column "),
    ("\"threads\": 2", "\"threads\": 2.5", "invalid type: floating point `2.5`, expected u64 at "),
    ("\"threads\": 2", "\"threads\": -2", "invalid value: integer `-2`, expected u64 at "),
    ("\"unsent\": 9", "\"unsent\": 9007199254740993", "the count 9007199254740993 is too large"),
    ("\"cpu_s\": 0.5", "\"cpu_s\": 1e99", "cpu_s: cannot convert float seconds to Duration: "),
    ("\"cpu_s\": 0.5", "\"cpu_s\": -1", "cpu_s: cannot convert float seconds to Duration: "),
    ("\"cpu_s\": 0.5", "\"cpu_s\": null", "invalid type: null, expected f64 at "),
    ("[0, 1, 2, 3, 4, 5]", "[0, 1]", "invalid length 2, expected an array of length 6 at "),
    ("[0, 1, 2, 3, 4, 5]", "[0, 1, 2, 3, 4, 4]", "status_codes: more responses than in statuses"),
    ("\"404\": 4", "\"0404\": 4", "invalid number at "),
    ("\"404\": 4", "\"1000\": 4", "status_codes: 1000 is not a status"),
    ("\"reset\": 4", "\"reset\": \"4\"", "invalid type: string \"4\", expected u64 at "),
    ("{\"at\": 1,", "{", "missing field `at` at "),
    ("[[70015, 1]]", "[[70015]]", "invalid length 1, expected a tuple of size 2 at "),
    ("[[70015, 1]]", "[[70015, 0]]", "thread_rate: invalid count 0"),
    ("{\"from\": 10,", "{", "\"closed\" or an object with from and to at "),
    ("]}", "]", "EOF while parsing an object at line 2 column 0"),
];

#[test]
fn what_is_refused() {
    let text = write(&[run()]);
    for (good, bad, expected) in BAD {
        let at = text.rfind(good).expect(good);
        let error = read(format!("{}{bad}{}", &text[..at], &text[at + good.len()..]).as_bytes());
        let error = error.unwrap_err();
        assert!(error.starts_with(expected), "{bad}: {error}");
    }
    let two = write(&[run(), run()]).replace("\"cpu_s\": 0.5", "\"cpu_s\": -1");
    assert!(read(two.as_bytes()).unwrap_err().starts_with("run 1: cpu_s: "));
    assert!(read(b"1").unwrap_err().starts_with("invalid type: integer `1`, expected an object "));
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

/// Two counts of one value are one; of too many there is an error, not an overflow.
#[test]
fn counts_add_up() {
    let counts = |counts: &str| {
        let text = write(&[run()]).replace("[[70015, 1]]", counts);
        read(text.as_bytes()).map(|runs| runs[0].tally.rate.len())
    };
    assert_eq!(counts("[[1, 2], [1, 3], [0, 1]]"), Ok(6));
    assert!(counts(&format!("[[1, {COUNT_MAX}], [2, 1]]")).is_err());
    assert!(counts(&format!("[[1, 1], [2, {}]]", u64::MAX)).is_err());
}

/// Other programs read these files.
#[test]
fn names_order_and_numbers_stay() {
    let mut run = run();
    let judged = |kept, measured| Judged {
        expectation: "p99<20ms".into(),
        kept,
        measured,
        shown: "1.50ms".into(),
    };
    run.judged = vec![judged(true, Some(1500.5)), judged(false, None)];
    run.tally.tls.count("TLSv1.3".into(), true);
    run.tally.tls.connect_us.record(5).unwrap();
    let turn = |side, rate| {
        let moment = moments([(rate / 100.0, 10, 1234)]).remove(0);
        MeasuredTurn { side, rate, moment }
    };
    let block = |rate| {
        let turns = vec![turn(ComparedSide::A, rate), turn(ComparedSide::B, 2.0 * rate)];
        TurnBlock { turns }
    };
    let turn = Duration::from_millis(500);
    let blocks = [101.5, 102.0, 103.0, 101.5, 102.0, 103.0].map(block).into();
    let turns = Turns { turn, sides: [results(), run], blocks };
    assert_eq!(write_turns(&turns), include_str!("turns.json"));
}

#[test]
fn connections_beside_the_load_are_written_if_there_are_any() {
    let mut run = results();
    assert!(!write(&[run.clone()]).contains("\"idle\""));
    run.tally.background.idle.connections = 3;
    run.tally.background.slow.connections = 1;
    let text = write(&[run]);
    let idle = "\"idle\": {\"connections\": 3, \"open\": 0, \"closed\": 0, \"failed\": 0}";
    let slow = "\"slow\": {\"connections\": 1, \"replies\": 0, \"bytes\": 0, \"failed\": 0}";
    assert!(text.contains(idle) && text.contains(slow), "{text}");
    assert!(read(text.as_bytes()).is_ok());
}
