//! What has to be known to read the figures, and what wrk's text has no place for.
//!
//! Said to people, after wrk's text; nothing reads it back.

use super::{Doubt, Errors, Pace, Results, Tally, amounts, doubts};

/// Columns that the names of a list take.
const NAMES: usize = 34;

/// All that is to be said about a run; `latency` for more of its percentiles.
pub fn notes(results: &Results, latency: bool) -> String {
    let mut parts = Vec::new();
    if results.interrupted {
        parts.push(interrupted(results));
    }
    parts.push(match results.pace {
        Pace::Closed => CLOSED.to_owned(),
        Pace::Open { from, to } => open(results, from, to),
    });
    if latency {
        parts.push(percentiles(&results.tally));
    }
    if results.tally.failures() > 0 {
        parts.push(errors(&results.tally));
    }
    let doubts = doubts(results);
    if !doubts.is_empty() {
        let reason = |Doubt { what, remedy }: &Doubt| format!("  - {what}:\n    {remedy}.\n");
        let reasons: String = doubts.iter().map(reason).collect();
        parts.push(format!("These figures are the generator's, not the server's:\n{reasons}"));
    }
    parts.join("\n")
}

const CLOSED: &str = "\
Closed loop: each connection waited for its reply before it sent the next request. So a slow
server was asked less, and latency leaves out the requests that would have waited meanwhile.
For latency as users see it, ask at a rate of your own: --rate.
";

const OPEN: &str = "\
Latency counts from the moment at which a request was to start: waiting for a free connection is
part of it.
";

fn interrupted(results: &Results) -> String {
    let asked = results.duration.map(|time| format!(" of {}", time_s(time.as_secs_f64())));
    let elapsed = time_s(results.elapsed.as_secs_f64());
    format!(
        "Interrupted after {elapsed}{}: the figures are of that time.\n",
        asked.unwrap_or_default()
    )
}

fn time_s(seconds: f64) -> String {
    amounts::time_us(seconds * 1e6)
}

fn open(results: &Results, from: f64, to: f64) -> String {
    let tally = &results.tally;
    let asked = if from == to {
        format!("{from} requests/s asked for")
    } else {
        format!("{from:.0} to {to:.0} requests/s asked for")
    };
    let mut text = format!(
        "Open loop: {asked}, {:.2} replies/s received.\n{OPEN}",
        results.replies_per_second(),
    );
    if tally.unsent > 0 {
        text += &line("requests whose time came, not sent", &tally.unsent.to_string());
    }
    let late = |quantile| amounts::time_us(tally.lateness_us.value_at_quantile(quantile) as f64);
    let max = amounts::time_us(tally.lateness_us.max() as f64);
    let late = format!("p50 {}, p99 {}, max {max}", late(0.5), late(0.99));
    text + &line("the generator's own lateness", &late)
}

/// Those beyond wrk's.
fn percentiles(tally: &Tally) -> String {
    let latency = &tally.latency_us;
    let value = |value: u64| amounts::time_us(value as f64);
    let mut text = "Latency, further:\n".to_owned();
    for (name, quantile) in [("99.9%", 0.999), ("99.99%", 0.9999)] {
        text += &line(name, &value(latency.value_at_quantile(quantile)));
    }
    text + &line("max", &value(latency.max()))
}

/// Every kind by its name, those that occurred.
fn errors(tally: &Tally) -> String {
    let Errors { refused, unreachable, reset, closed, short, invalid, write, timeout } =
        tally.errors;
    let kinds = [
        ("connection refused", refused),
        ("connection not possible", unreachable),
        ("connection reset", reset),
        ("closed before the reply", closed),
        ("reply ended too early", short),
        ("reply is not HTTP as expected", invalid),
        ("request could not be written", write),
        ("no complete reply in time", timeout),
        ("status 4xx", tally.statuses[4]),
        ("status 5xx", tally.statuses[5]),
        ("status of no known class", tally.statuses[0]),
    ];
    let lines = kinds.iter().filter(|(_, count)| *count > 0);
    let lines: String = lines.map(|(name, count)| line(name, &count.to_string())).collect();
    format!("Errors, each counted once, as what it is:\n{lines}")
}

fn line(name: &str, value: &str) -> String {
    format!("  {name:<NAMES$}  {value}\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::testing::results;

    #[test]
    fn a_closed_loop_says_so() {
        assert_eq!(notes(&results(), false), CLOSED);
    }

    #[test]
    fn an_open_loop() {
        let mut results = results();
        results.pace = Pace::Open { from: 100.0, to: 100.0 };
        results.tally.replies = 995;
        results.tally.unsent = 5;
        results.tally.latency_us.record(50_000).unwrap();
        for lateness in [10, 20, 30] {
            results.tally.lateness_us.record(lateness).unwrap();
        }
        let expected = "\
Open loop: 100 requests/s asked for, 99.50 replies/s received.
Latency counts from the moment at which a request was to start: waiting for a free connection is
part of it.
  requests whose time came, not sent  5
  the generator's own lateness        p50 20.00us, p99 30.00us, max 30.00us
";
        assert_eq!(notes(&results, false), expected);
        results.pace = Pace::Open { from: 10.0, to: 200.0 };
        let text = notes(&results, false);
        assert!(text.starts_with("Open loop: 10 to 200 requests/s asked for, 99.50 replies/s "));
    }

    #[test]
    fn every_error_by_its_name() {
        let mut results = results();
        for (n, (_, count)) in (1..).zip(results.tally.errors.named_mut()) {
            *count = n;
        }
        results.tally.statuses = [9, 1, 1, 1, 40, 50];
        let expected = "
Errors, each counted once, as what it is:
  connection refused                  1
  connection not possible             2
  connection reset                    3
  closed before the reply             4
  reply ended too early               5
  reply is not HTTP as expected       6
  request could not be written        7
  no complete reply in time           8
  status 4xx                          40
  status 5xx                          50
  status of no known class            9
";
        assert_eq!(notes(&results, false), CLOSED.to_owned() + expected);
        results.tally.errors = Errors { reset: 3, ..Errors::default() };
        results.tally.statuses = [0; 6];
        let text = notes(&results, false);
        assert!(text.ends_with("is:\n  connection reset                    3\n"), "{text}");
    }

    #[test]
    fn interrupted_and_doubted() {
        let mut results = results();
        results.interrupted = true;
        results.elapsed = Duration::from_millis(2500);
        results.busiest_thread = 0.99;
        let text = notes(&results, false);
        assert!(text.starts_with("Interrupted after 2.50s of 10.00s: "), "{text}");
        let doubt =
            "\nThese figures are the generator's, not the server's:\n  - its busiest thread";
        assert!(text.contains(doubt), "{text}");
    }

    #[test]
    fn further_percentiles() {
        let mut results = results();
        for (value, count) in [(100, 9989), (200, 9), (300, 1), (1500, 1)] {
            results.tally.latency_us.record_n(value, count).unwrap();
        }
        let expected = "
Latency, further:
  99.9%                               200.00us
  99.99%                              300.00us
  max                                 1.50ms
";
        assert!(notes(&results, true).ends_with(expected), "{}", notes(&results, true));
    }
}
