//! wrk's output, byte for byte, for scripts that parse it.
//!
//! It is that of wrk 4.1.0 on x86-64, which 4.2.0 did not change. Everything that wrk does not
//! print is in [`notes`](super::notes).
//!
//! Some numbers are not those of wrk. It adds latencies that it has not measured, as an estimate
//! for stalled connections; here only measured ones count. Its percentiles are one value higher if
//! the rank is an integer, and it rounds ties as 80-bit numbers do.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Errors, Percentile, Results, Spread, amounts};

/// The two lines before a run. They contain the duration if there is one; wrk always has one.
pub fn opening(
    urls: &[String],
    threads: u64,
    connections: u64,
    duration: Option<Duration>,
) -> String {
    let time = duration.map_or_else(String::new, |time| format!("{} ", asked(time)));
    let url = urls.first().map_or("", String::as_str);
    let more = match urls.len() {
        0 | 1 => String::new(),
        several => format!(" and {} more", several - 1),
    };
    format!("Running {time}test @ {url}{more}\n  {threads} threads and {connections} connections\n")
}

/// A configured time. wrk only has whole seconds; others are written with decimals.
fn asked(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        amounts::time_s(time.as_secs_f64())
    } else {
        format!("{}s", time.as_secs_f64())
    }
}

/// The percentiles of wrk's `--latency`.
pub const PERCENTILES: [&str; 4] = ["50", "75", "90", "99"];

/// The text after a run, with these percentiles of latency.
pub fn closing(results: &Results, percentiles: &[Percentile]) -> String {
    let tally = &results.tally;
    let mut text = thread_stats(results);
    if !percentiles.is_empty() {
        text += &latency_distribution(&tally.latency_us, percentiles);
    }
    text += &format!(
        "  {} requests in {}, {}B read\n",
        tally.replies,
        amounts::time_us(results.elapsed.as_micros() as f64),
        amounts::bytes(tally.bytes as f64),
    );
    text += &socket_errors(&tally.errors);
    if tally.bad_statuses() > 0 {
        text += &format!("  Non-2xx or 3xx responses: {}\n", tally.bad_statuses());
    }
    let transfer = amounts::bytes(results.per_second(tally.bytes));
    text += &format!("Requests/sec: {:9.2}\n", results.replies_per_second());
    text += &format!("Transfer/sec: {transfer:>10}B\n");
    text
}

fn thread_stats(results: &Results) -> String {
    let row = |name: &str, histogram: &Histogram<u64>, write: fn(f64) -> String| {
        let spread = Spread::of(histogram);
        let within = match spread.within {
            nothing if nothing.is_nan() => format!("{:>8}", "-nan"),
            share => format!("{:8.2}", share * 100.0),
        };
        format!(
            "    {name:<10}{}{}{}{within}%\n",
            cell(&write(spread.mean), 8),
            cell(&write(spread.stdev), 10),
            cell(&write(histogram.max() as f64), 9),
        )
    };
    let (latency, rate) = (&results.tally.latency_us, &results.tally.rate);
    format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev")
        + &row("Latency", latency, amounts::time_us)
        + &row("Req/Sec", rate, amounts::count)
}

fn latency_distribution(latency_us: &Histogram<u64>, percentiles: &[Percentile]) -> String {
    let mut text = "  Latency Distribution\n".to_owned();
    for percentile in percentiles {
        let value = percentile.of(latency_us);
        text += &format!("{percentile:7}%{}\n", cell(&amounts::time_us(value as f64), 10));
    }
    text
}

/// The line of errors, in wrk's four kinds; empty without any.
fn socket_errors(errors: &Errors) -> String {
    let Errors { refused, unreachable, handshake, reset, closed, short, invalid, write, timeout } =
        errors;
    if errors.sum() == 0 {
        return String::new();
    }
    let connect = refused + unreachable + handshake;
    let read = reset + closed + short + invalid;
    format!("  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}\n")
}

/// A cell with aligned digits: a unit of one letter is followed by one space, no unit by two. A
/// wider text is cut: `1000.00ms` in a column of eight is `1000.00m`.
fn cell(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).filter(char::is_ascii_alphabetic).count();
    let blanks = 2 - letters;
    let width = width - blanks;
    format!("{text:>width$.width$}{:blanks$}", "")
}

#[cfg(test)]
mod tests;
