use std::time::Duration;

use testing::Folder;

use super::*;
use crate::results::Moment;
use crate::results::testing::{results, second};

/// A run of ten seconds with a rate of replies that all have the same latency.
fn measured(rate: u64, latency_us: u64) -> Results {
    let mut results = results();
    results.elapsed = Duration::from_secs(10);
    for n in 0..10 {
        // Seconds differ by about a percent.
        let wave = [0, 1, 3, 1, 2][n % 5];
        let second = second(n as f64 + 1.0, rate + rate * wave / 100, latency_us + wave);
        results.tally.add(&second.tally);
        results.seconds.push(Moment::from(&second));
    }
    results
}

fn runs<const N: usize>(rates: [u64; N], latency_us: u64) -> Vec<Results> {
    rates.iter().map(|rate| measured(*rate, latency_us)).collect()
}

#[test]
fn a_difference_between_repeats_is_shown() {
    let a = runs([1000, 1010, 990, 1005, 995], 900);
    let b = runs([1100, 1111, 1089, 1105, 1095], 800);
    let expected = "                                   A           B   B from A
requests/s                   1013.65     1115.05    +10.0 % [+8.7, +11.3]   more than the noise
mean latency                  0.90ms    801.41us    -11.1 % [-11.1, -11.1]  more than the noise
p50                           0.90ms    801.00us    -11.1 % [-11.1, -11.1]  more than the noise
p90                           0.90ms    803.00us    -11.1 % [-11.1, -11.1]  more than the noise
p99                           0.90ms    803.00us    -11.1 % [-11.1, -11.1]  more than the noise
p99.9                         0.90ms    803.00us    -11.1 % [-11.1, -11.1]  more than the noise
max                           0.90ms    803.00us    -11.1 % [-11.1, -11.1]  more than the noise
generator's CPU/request      49.33us     44.84us     -9.1 % [-10.2, -8.0]   more than the noise
failed                      0.0000 %    0.0000 %

B is 10.0 % faster [8.7, 11.3], more than the noise.
The noise is that between the runs: 5 of A, 5 of B.
";
    assert_eq!(compare(&a, &b), expected);
    let back = compare(&b, &a);
    assert!(back.contains("\nB is 9.1 % slower [8.0, 10.2], more than the noise.\n"), "{back}");
}

#[test]
fn equal_repeats_show_no_difference() {
    let text = compare(&runs([1000, 1100, 900], 10), &runs([1010, 890, 1120], 10));
    let expected = "\nNo difference in rate that these runs can show: B +0.5 % [-24.1, +33.1].\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\nmean latency"), "{text}");
    assert!(!text.contains("more than the noise"), "{text}");
}

/// Microseconds are integers: 26 and 27 in every repeat may be 26.4 and 26.6.
#[test]
fn one_step_of_a_histogram_is_not_a_difference() {
    let verdict = |a, b| {
        let text = compare(&runs([1000, 1000], a), &runs([1000, 1000], b));
        let row = text.lines().find(|line| line.starts_with("p50")).map(str::to_owned);
        row.unwrap()
    };
    assert!(verdict(26, 27).ends_with("within the noise"), "{}", verdict(26, 27));
    assert!(verdict(26, 28).ends_with("more than the noise"), "{}", verdict(26, 28));
    assert!(verdict(100_000, 100_070).ends_with("within the noise"));
}

#[test]
fn single_runs_are_compared_by_seconds() {
    let text = compare(&runs([1000], 900), &runs([1100, 1100], 900));
    assert!(text.contains("\nThe noise is that between the seconds within runs. "), "{text}");
    assert!(text.contains("\nB is 10.0 % faster ["), "{text}");
    let verdicts = [("requests/s", "more than the noise"), ("p90", "noise unknown")];
    for (name, verdict) in verdicts {
        let row = |line: &str| line.starts_with(name) && line.ends_with(verdict);
        assert!(text.lines().any(row), "{name} {verdict}: {text}");
    }
    let mut short = measured(1000, 900);
    short.seconds.truncate(5);
    let text = compare(&[short], &runs([1100], 900));
    assert!(text.contains(
        "\nThese runs cannot show whether the difference in rate is more than the noise.\n"
    ));
}

/// The noise within a run makes a difference of one percent meaningless.
#[test]
fn noisy_seconds_hide_a_small_difference() {
    let mut noisy = measured(1000, 900);
    for (second, n) in noisy.seconds.iter_mut().zip(0..) {
        second.replies = if n < 5 { 700 } else { 1300 };
    }
    let text = compare(&[noisy], &runs([1010], 900));
    assert!(text.contains("\nNo difference in rate that these runs can show: B "), "{text}");
}

#[test]
fn the_headline_of_open_loops_is_their_p99() {
    let mut sides = [runs([1000, 1001, 1002], 1000), runs([1000, 1001, 1002], 2000)];
    sides.iter_mut().flatten().for_each(|run| run.pace = LoadKind::Open { from: 1e3, to: 1e3 });
    let text = compare(&sides[0], &sides[1]);
    assert!(text.contains("\nB's p99 latency is 99.7 % higher [99.7, 99.7], more "), "{text}");
}

#[test]
fn different_kinds_of_load_cause_a_warning() {
    let (mut a, mut b) = (runs([1000], 900), runs([1000], 900));
    assert!(!compare(&a, &b).contains("different kinds"));
    a[0].urls = vec!["http://127.0.0.1:1/x?y".into()];
    b[0].urls = vec!["https://h/x?y".into()];
    assert!(!compare(&a, &b).contains("different kinds"), "servers may differ");
    b[0].urls = vec!["http://h".into()];
    b[0].pace = LoadKind::Open { from: 10.0, to: 20.0 };
    b[0].connections = 11;
    let expected = "The loads differ:
  pace          A: closed loop
                B: open loop, 10 to 20 requests/s
  connections   A: 10
                B: 11
  requested     A: /x?y
                B: /

";
    assert!(compare(&a, &b).starts_with(expected), "{}", compare(&a, &b));
}

#[test]
fn doubtful_runs_cause_a_warning() {
    let (mut a, b) = (runs([1000, 1000], 900), runs([1000, 1000], 900));
    a[1].interrupted = true;
    a[1].busiest_thread = 0.95;
    let text = compare(&a, &b);
    assert!(text.contains("\nRun 2 of A was interrupted.\nThe figures of run 2 of A are the gen"));
    a[1].tally.errors.reset = 10;
    a[1].tally.statuses.add(500, 91);
    // 101 of 10150 in one run, and none in the other.
    assert!(compare(&a, &b).contains("\nfailed                      0.4975 %    0.0000 %\n"));
}

/// Without replies, no value has a ratio.
#[test]
fn runs_without_replies_have_no_ratio() {
    let none = || {
        let mut run = results();
        run.cpu = Duration::ZERO;
        run
    };
    let text = compare(&[none()], &[none()]);
    assert!(
        text.contains("\np99                           0.00us      0.00us        -\n"),
        "{text}"
    );
    assert!(text.contains("These runs cannot show whether "), "{text}");
}

#[test]
fn files_and_lists_of_files_are_read() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| {
        folder.write(name, text);
        folder.name(name)
    };
    let one = write("one.json", &json::write(&runs([1000], 900)));
    let two = write("two.json", &json::write(&runs([1001, 999], 900)));
    let none = write("none.json", "[]");
    let bad = write("bad.json", "[\n");
    let run = |words: &[&str]| run(&words.iter().map(OsString::from).collect::<Vec<_>>());

    let text = run(&[&format!("{one},{two}"), &two]).unwrap();
    assert!(text.ends_with("between the runs: 3 of A, 2 of B.\n"), "{text}");
    assert_eq!(run(&[&none, &one]), Err(format!("{none}: no runs")));
    let expected = format!("{bad}: EOF while parsing a list at line 2 column 0");
    assert_eq!(run(&[&one, &bad]), Err(expected));
    assert!(run(&[&one, "/nowhere"]).unwrap_err().starts_with("/nowhere: No such file"));
    assert!(run(&[&one]).unwrap_err().contains("\nUsage: weir load compare "));
    assert_eq!(run(&["--help"]), Ok(USAGE.to_owned()));
}
