//! Notes on the figures, and figures that wrk's text does not contain.
//!
//! They are printed for people after wrk's text, and never parsed.

use super::{
    BackgroundStats, Doubt, Errors, LoadKind, Results, RunStats, TlsStats, amounts, doubts,
};

/// The columns of names in a list.
const NAMES: usize = 34;
/// The most statuses to list.
const STATUSES_MAX: usize = 20;

/// All notes on a run; `further` for percentiles beyond wrk's.
pub fn notes(results: &Results, further: bool) -> String {
    let mut parts = Vec::new();
    if results.interrupted {
        parts.push(interrupted(results));
    }
    parts.push(match results.pace {
        LoadKind::Closed => CLOSED.to_owned(),
        LoadKind::Open { from, to } => open(results, from, to),
    });
    if further {
        parts.push(percentiles(&results.tally));
    }
    parts.extend(tls(&results.tally.tls));
    parts.extend(statuses(&results.tally));
    parts.extend(background(&results.tally.background));
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
Closed loop: each connection waited for a reply before it sent the next request. A slow server
therefore received fewer requests, and the latency excludes those that would have had to wait.
To measure the latency that users see, set a rate with --rate.
";

const OPEN: &str = "\
Latency counts from the scheduled start of a request and includes waiting for a free connection.
";

fn interrupted(results: &Results) -> String {
    let asked = results.duration.map(|time| format!(" of {}", time_s(time.as_secs_f64())));
    let elapsed = time_s(results.elapsed.as_secs_f64());
    format!(
        "Interrupted after {elapsed}{}; the figures cover that time.\n",
        asked.unwrap_or_default()
    )
}

fn time_s(seconds: f64) -> String {
    amounts::time_us(seconds * 1e6)
}

fn open(results: &Results, from: f64, to: f64) -> String {
    let tally = &results.tally;
    let asked = if from == to {
        format!("{from} requests/s requested")
    } else {
        format!("{from:.0} to {to:.0} requests/s requested")
    };
    let mut text = format!(
        "Open loop: {asked}, {:.2} replies/s received.\n{OPEN}",
        results.replies_per_second(),
    );
    if tally.unsent > 0 {
        text += &line("requests due but not sent", &tally.unsent.to_string());
    }
    let late = |quantile| amounts::time_us(tally.lateness_us.value_at_quantile(quantile) as f64);
    let max = amounts::time_us(tally.lateness_us.max() as f64);
    let late = format!("p50 {}, p99 {}, max {max}", late(0.5), late(0.99));
    text + &line("the generator's own lateness", &late)
}

/// The percentiles beyond wrk's.
fn percentiles(tally: &RunStats) -> String {
    let latency = &tally.latency_us;
    let value = |value: u64| amounts::time_us(value as f64);
    let mut text = "Further latencies:\n".to_owned();
    for (name, quantile) in [("99.9%", 0.999), ("99.99%", 0.9999)] {
        text += &line(name, &value(latency.value_at_quantile(quantile)));
    }
    text + &line("max", &value(latency.max()))
}

/// The kinds of errors that occurred, by name.
pub(super) fn errors(tally: &RunStats) -> String {
    let Errors { refused, unreachable, handshake, reset, closed, short, invalid, write, timeout } =
        tally.errors;
    let kinds = [
        ("connection refused", refused),
        ("connection failed", unreachable),
        ("TLS handshake failed", handshake),
        ("connection reset", reset),
        ("closed before the reply", closed),
        ("reply ended too early", short),
        ("reply is not valid HTTP", invalid),
        ("request could not be written", write),
        ("no complete reply in time", timeout),
    ];
    let lines = kinds.iter().filter(|(_, count)| *count > 0);
    let mut text: String = lines.map(|(name, count)| line(name, &count.to_string())).collect();
    for (place, (status, count)) in tally.statuses.bad_codes().enumerate() {
        if place == STATUSES_MAX {
            let rest = tally.statuses.bad_codes().skip(place).map(|(_, count)| count).sum::<u64>();
            text += &line("other statuses", &rest.to_string());
            break;
        }
        text += &line(&format!("status {status}"), &count.to_string());
    }
    format!("Errors, each counted once:\n{text}")
}

/// The negotiated TLS sessions, the time of handshakes, and the error of the first failed one.
fn tls(tls: &TlsStats) -> Option<String> {
    let mut text = String::new();
    for agreed in &tls.agreed {
        let counts = format!("{} full, {} resumed", agreed.full, agreed.resumed);
        text += &line(&counts, &agreed.what);
    }
    if !tls.connect_us.is_empty() {
        let at = |quantile| amounts::time_us(tls.connect_us.value_at_quantile(quantile) as f64);
        let max = amounts::time_us(tls.connect_us.max() as f64);
        let times = format!("p50 {}, p99 {}, max {max}", at(0.5), at(0.99));
        text += &line("time to connect, with handshake", &times);
    }
    if let Some(error) = &tls.first_error {
        text += &line("first failed handshake", error);
    }
    (!text.is_empty()).then(|| format!("TLS handshakes:\n{text}"))
}

/// All received statuses, if some are neither 200 nor listed as errors.
fn statuses(tally: &RunStats) -> Option<String> {
    let codes = tally.statuses.codes();
    if tally.statuses.within(&(100..=399)) == tally.statuses.within(&(200..=200)) {
        return None;
    }
    let lines = codes.iter().take(STATUSES_MAX);
    let mut text: String =
        lines.map(|(status, count)| line(&status.to_string(), &count.to_string())).collect();
    if let Some(more) = codes.len().checked_sub(STATUSES_MAX).filter(|more| *more > 0) {
        text += &line(&format!("and {more} more"), "");
    }
    Some(format!("Replies by status:\n{text}"))
}

/// The connections beside the measured load.
fn background(stats: &BackgroundStats) -> Option<String> {
    let BackgroundStats { idle, slow } = stats;
    let mut text = String::new();
    if idle.connections > 0 {
        let closed = format!("{} closed by the server", idle.closed);
        let counts = format!("{} of {} open, {closed}", idle.open, idle.connections);
        text += &line("idle connections", &counts);
    }
    if slow.connections > 0 {
        let (replies, failed) = (slow.replies, slow.failed);
        let counts = format!("{} with {replies} replies, {failed} failures", slow.connections);
        text += &line("slow clients", &counts);
    }
    (!text.is_empty()).then(|| format!("Beside the measured load:\n{text}"))
}

fn line(name: &str, value: &str) -> String {
    format!("{}\n", format!("  {name:<NAMES$}  {value}").trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::testing::results;

    #[test]
    fn a_closed_loop_is_noted() {
        assert_eq!(notes(&results(), false), CLOSED);
    }

    #[test]
    fn an_open_loop_is_noted() {
        let mut results = results();
        results.pace = LoadKind::Open { from: 100.0, to: 100.0 };
        results.tally.replies = 995;
        results.tally.unsent = 5;
        results.tally.latency_us.record(50_000).unwrap();
        for lateness in [10, 20, 30] {
            results.tally.lateness_us.record(lateness).unwrap();
        }
        let expected = "\
Open loop: 100 requests/s requested, 99.50 replies/s received.
Latency counts from the scheduled start of a request and includes waiting for a free connection.
  requests due but not sent           5
  the generator's own lateness        p50 20.00us, p99 30.00us, max 30.00us
";
        assert_eq!(notes(&results, false), expected);
        results.pace = LoadKind::Open { from: 10.0, to: 200.0 };
        let text = notes(&results, false);
        assert!(text.starts_with("Open loop: 10 to 200 requests/s requested, 99.50 replies/s "));
    }

    #[test]
    fn errors_are_named() {
        let mut results = results();
        for (n, (_, count)) in (1..).zip(results.tally.errors.named_mut()) {
            *count = n;
        }
        for (status, count) in [(404, 30), (429, 10), (503, 50), (999, 9)] {
            results.tally.statuses.add(status, count);
        }
        let expected = "
Errors, each counted once:
  connection refused                  1
  connection failed                   2
  TLS handshake failed                3
  connection reset                    4
  closed before the reply             5
  reply ended too early               6
  reply is not valid HTTP             7
  request could not be written        8
  no complete reply in time           9
  status 404                          30
  status 429                          10
  status 503                          50
  status 999                          9
";
        assert_eq!(notes(&results, false), CLOSED.to_owned() + expected);
        results.tally.errors = Errors { reset: 3, ..Errors::default() };
        results.tally.statuses = Default::default();
        let text = notes(&results, false);
        assert!(text.ends_with("once:\n  connection reset                    3\n"), "{text}");
    }

    #[test]
    fn handshakes_are_described() {
        let mut results = results();
        let tls = &mut results.tally.tls;
        tls.count("TLSv1.3, X25519".into(), false);
        tls.count("TLSv1.3, X25519".into(), true);
        tls.connect_us.record(1500).unwrap();
        tls.first_error = Some("alert".into());
        let expected = "
TLS handshakes:
  1 full, 1 resumed                   TLSv1.3, X25519
  time to connect, with handshake     p50 1.50ms, p99 1.50ms, max 1.50ms
  first failed handshake              alert
";
        assert_eq!(notes(&results, false), CLOSED.to_owned() + expected);
    }

    #[test]
    fn connections_beside_the_load_are_noted() {
        let mut results = results();
        let background = &mut results.tally.background;
        (background.idle.connections, background.idle.open, background.idle.closed) = (50, 49, 3);
        (background.slow.connections, background.slow.replies, background.slow.failed) = (8, 7, 1);
        let expected = "
Beside the measured load:
  idle connections                    49 of 50 open, 3 closed by the server
  slow clients                        8 with 7 replies, 1 failures
";
        assert_eq!(notes(&results, false), CLOSED.to_owned() + expected);
    }

    #[test]
    fn statuses_that_are_no_errors_are_listed() {
        let mut results = results();
        results.tally.statuses.add(200, 5);
        assert_eq!(notes(&results, false), CLOSED);
        results.tally.statuses.add(304, 7);
        let expected = "
Replies by status:
  200                                 5
  304                                 7
";
        assert_eq!(notes(&results, false), CLOSED.to_owned() + expected);
    }

    #[test]
    fn the_list_of_statuses_is_limited() {
        let mut results = results();
        (350..450).for_each(|status| results.tally.statuses.add(status, 2));
        let text = notes(&results, false);
        let both = [
            "\n  369                                 2\n  and 80 more\n",
            "\n  status 419                          2\n  other statuses                      60\n",
        ];
        assert!(both.iter().all(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn interruptions_and_doubts_are_noted() {
        let mut results = results();
        results.interrupted = true;
        results.elapsed = Duration::from_millis(2500);
        results.busiest_thread = 0.99;
        let text = notes(&results, false);
        assert!(text.starts_with("Interrupted after 2.50s of 10.00s; "), "{text}");
        let doubt =
            "\nThese figures are the generator's, not the server's:\n  - its busiest thread";
        assert!(text.contains(doubt), "{text}");
    }

    #[test]
    fn further_percentiles_are_listed() {
        let mut results = results();
        for (value, count) in [(100, 9989), (200, 9), (300, 1), (1500, 1)] {
            results.tally.latency_us.record_n(value, count).unwrap();
        }
        let expected = "
Further latencies:
  99.9%                               200.00us
  99.99%                              300.00us
  max                                 1.50ms
";
        assert!(notes(&results, true).ends_with(expected), "{}", notes(&results, true));
    }
}
