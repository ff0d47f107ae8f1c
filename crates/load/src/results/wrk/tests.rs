//! The texts are output of wrk 4.1.0, except for one deviation (347.04us) and the counts of errors;
//! the numbers are chosen to produce them.

use super::*;
use crate::results::testing::results;

fn record(histogram: &mut Histogram<u64>, values: &[(u64, u64)]) {
    values.iter().for_each(|(value, count)| histogram.record_n(*value, *count).unwrap());
}

fn percentiles<const N: usize>(all: [&str; N]) -> [Percentile; N] {
    all.map(|text| Percentile::parse(text).unwrap())
}

#[test]
fn requested_percentiles_are_printed() {
    let mut results = results();
    record(&mut results.tally.latency_us, &[(100, 9989), (200, 10), (1500, 1)]);
    let text = closing(&results, &percentiles(["50", "99.9", "99.99", "100"]));
    let expected = "  Latency Distribution
     50%  100.00us
   99.9%  200.00us
  99.99%  200.00us
    100%    1.50ms
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_opening_is_printed() {
    let text = |seconds: f64| {
        let time = Duration::from_secs_f64(seconds);
        opening(&["http://127.0.0.1:37899/x?y=1".into()], 2, 4, Some(time))
    };
    let expected =
        "Running 4s test @ http://127.0.0.1:37899/x?y=1\n  2 threads and 4 connections\n";
    assert_eq!(text(4.0), expected);
    assert!(text(7200.0).starts_with("Running 120m test @"));
    assert!(text(0.5).starts_with("Running 0.5s test @"));
    let urls = ["http://a/", "http://b/", "http://c/"].map(String::from);
    assert!(opening(&urls, 1, 1, None).starts_with("Running test @ http://a/ and 2 more\n"));
}

#[test]
fn results_of_a_slow_server_are_printed() {
    let mut results = results();
    results.elapsed = Duration::from_micros(4_009_000);
    results.tally.replies = 12;
    results.tally.bytes = 516;
    record(&mut results.tally.latency_us, &[(1_201_000, 8), (1_202_000, 4)]);
    record(&mut results.tally.rate, &[(1, 12)]);
    let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.20s   504.18us   1.20s    66.67%
    Req/Sec     1.00      0.00     1.00    100.00%
  Latency Distribution
     50%    1.20s\x20
     75%    1.20s\x20
     90%    1.20s\x20
     99%    1.20s\x20
  12 requests in 4.01s, 516.00B read
Requests/sec:      2.99
Transfer/sec:     128.71B
";
    assert_eq!(closing(&results, &percentiles(PERCENTILES)), expected);
}

#[test]
fn a_run_without_replies_is_printed() {
    let mut results = results();
    results.elapsed = Duration::from_millis(1001);
    let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.00us    0.00us   0.00us    -nan%
    Req/Sec     0.00      0.00     0.00      -nan%
  0 requests in 1.00s, 0.00B read
Requests/sec:      0.00
Transfer/sec:       0.00B
";
    assert_eq!(closing(&results, &[]), expected);
}

#[test]
fn errors_and_statuses_are_printed() {
    let mut results = results();
    results.elapsed = Duration::from_millis(1100);
    results.tally.replies = 4440;
    results.tally.bytes = 190_925;
    for (status, count) in [(200, 4000), (304, 40), (404, 300), (500, 100)] {
        results.tally.statuses.add(status, count);
    }
    results.tally.errors = Errors {
        refused: 1,
        unreachable: 2,
        handshake: 4,
        reset: 10,
        closed: 20,
        short: 30,
        invalid: 40,
        write: 5,
        timeout: 6,
    };
    let expected = "  4440 requests in 1.10s, 186.45KB read
  Socket errors: connect 7, read 100, write 5, timeout 6
  Non-2xx or 3xx responses: 400
Requests/sec:   4036.36
Transfer/sec:    169.50KB
";
    let text = closing(&results, &[]);
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn cells_are_cut_as_by_wrk() {
    let cells = [
        ("462.61us", 8, "462.61us"),
        ("3.34ms", 10, "    3.34ms"),
        ("1.20s", 8, "  1.20s "),
        ("32.12k", 8, " 32.12k "),
        ("1.00", 8, "  1.00  "),
        ("1000.00ms", 8, "1000.00m"),
    ];
    for (text, width, expected) in cells {
        assert_eq!(cell(text, width), expected);
    }
}
