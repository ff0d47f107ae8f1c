//! wrk.

use super::text::{after, microseconds, number};
use crate::figures::MeasuredRun;

pub(super) fn words(connections: u32, seconds: u64, close: bool) -> Vec<String> {
    let mut words =
        vec!["wrk".to_owned(), "-t1".into(), format!("-c{connections}"), format!("-d{seconds}s")];
    words.push("--latency".into());
    if close {
        words.extend(["-H".into(), "Connection: close".into()]);
    }
    words
}

/// Reads the summary. Latencies are wrk's own, with those that it adds as an estimate.
pub(super) fn read(text: &str) -> Option<MeasuredRun> {
    let (requests, rest) = text.lines().find_map(|line| line.split_once(" requests in "))?;
    let seconds = microseconds(rest.split_once(',')?.0)? / 1e6;
    let mut latency = after(text, "Latency ")?.split_whitespace();
    let (mean, max) = (latency.next()?, latency.nth(1)?);
    let socket = after(text, "Socket errors:").unwrap_or_default().split(',');
    let socket = socket.filter_map(|kind| number(kind.rsplit(' ').next()?)).sum::<f64>();
    let bad = after(text, "Non-2xx or 3xx responses:").map_or(Some(0.0), number)?;
    Some(MeasuredRun {
        requests: requests.trim().parse().ok()?,
        seconds,
        rate: number(after(text, "Requests/sec:")?)?,
        errors: (socket + bad) as u64,
        mean_us: microseconds(mean)?,
        p50_us: microseconds(after(text, "50%")?)?,
        p99_us: microseconds(after(text, "99%")?)?,
        max_us: microseconds(max)?,
        ..MeasuredRun::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let run = read(include_str!("testdata/wrk.txt")).unwrap();
        assert_eq!((run.requests, run.rate, run.errors), (27_078, 26_891.91, 0));
        assert_eq!((run.seconds, run.mean_us, run.p50_us), (1.01, 1230.0, 341.0));
        assert_eq!((run.p99_us, run.max_us), (11_120.0, 21_780.0));
        assert!(read("unable to connect to 127.0.0.1:1 Connection refused\n").is_none());
    }

    #[test]
    fn errors_of_every_kind_are_added() {
        let text = include_str!("testdata/wrk.txt").replace(
            "Requests/sec",
            "  Socket errors: connect 1, read 2, write 0, timeout 4\n  \
             Non-2xx or 3xx responses: 100\nRequests/sec",
        );
        assert_eq!(read(&text).map(|run| run.errors), Some(107));
    }
}
