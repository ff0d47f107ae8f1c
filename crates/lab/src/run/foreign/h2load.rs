//! h2load, with HTTP/1.1.

use super::text::{after, microseconds, number};
use crate::figures::MeasuredRun;

pub(super) fn words(connections: u32, seconds: u64) -> Vec<String> {
    let numbers = [format!("-c{connections}"), format!("-D{seconds}")];
    let words = ["h2load", "--h1", "-t1"].map(str::to_owned);
    words.into_iter().chain(numbers).collect()
}

/// Reads the summary. It has no percentiles.
pub(super) fn read(text: &str) -> Option<MeasuredRun> {
    let mut finished = after(text, "finished in ")?.split(", ");
    let seconds = microseconds(finished.next()?)? / 1e6;
    let rate = number(finished.next()?.strip_suffix(" req/s")?)?;
    let counts = after(text, "requests:")?;
    let count = |kind: &str| {
        let part = counts.split(", ").find_map(|part| part.strip_suffix(kind))?;
        number(part.trim())
    };
    // Failed ones include those that had errors or timed out.
    let (requests, failed) = (count(" done")?, count(" failed")?);
    // Only 4xx and 5xx count as failed.
    let statuses = after(text, "status codes:")?.split(", ");
    let others = statuses.filter_map(|part| number(part.strip_suffix(" 3xx")?.trim())).sum::<f64>();
    let mut times = after(text, "time for request:")?.split_whitespace().skip(1);
    let (max, mean) = (times.next()?, times.next()?);
    Some(MeasuredRun {
        requests: requests as u64,
        seconds,
        rate,
        errors: (failed + others) as u64,
        mean_us: microseconds(mean)?,
        max_us: microseconds(max)?,
        ..MeasuredRun::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let run = read(include_str!("testdata/h2load.txt")).unwrap();
        assert_eq!((run.requests, run.rate, run.errors), (24_770, 24_770.0, 0));
        assert_eq!((run.seconds, run.mean_us, run.max_us), (1.0, 642.0, 13_700.0));
        assert!(read("starting benchmark...\n").is_none());
    }

    #[test]
    fn requests_that_failed_are_errors() {
        let text = include_str!("testdata/h2load.txt")
            .replace(" 0 failed", " 12 failed")
            .replace("2xx, 0 3xx", "2xx, 3 3xx");
        assert_eq!(read(&text).map(|run| run.errors), Some(15));
    }
}
