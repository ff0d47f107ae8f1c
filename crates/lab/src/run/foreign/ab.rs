//! ab, ApacheBench.

use super::text::{after, number};
use crate::figures::MeasuredRun;

/// More requests than a second can have: without a number, ab ends after 50,000.
const REQUESTS_PER_S: u64 = 1_000_000;

pub(super) fn words(connections: u32, seconds: u64, close: bool) -> Vec<String> {
    let mut words = vec!["ab".to_owned(), "-q".into()];
    if !close {
        words.push("-k".into());
    }
    // -n follows -t, which would set it.
    let requests = seconds * REQUESTS_PER_S;
    let numbers = [("-c", u64::from(connections)), ("-t", seconds), ("-n", requests)];
    words
        .extend(numbers.into_iter().flat_map(|(option, value)| [option.into(), value.to_string()]));
    words
}

/// Reads the summary. Percentiles are whole milliseconds.
pub(super) fn read(text: &str) -> Option<MeasuredRun> {
    let count = |label| after(text, label).map_or(Some(0.0), number);
    let of = |label| number(after(text, label)?.split_whitespace().next()?);
    let milliseconds = |label| of(label).map(|ms| ms * 1000.0);
    let failed = count("Failed requests:")? + count("Write errors:")?;
    Some(MeasuredRun {
        requests: of("Complete requests:")? as u64,
        seconds: of("Time taken for tests:")?,
        rate: of("Requests per second:")?,
        errors: (failed + count("Non-2xx responses:")?) as u64,
        mean_us: milliseconds("Time per request:")?,
        p50_us: milliseconds("50%")?,
        p99_us: milliseconds("99%")?,
        max_us: milliseconds("100%")?,
        ..MeasuredRun::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let run = read(include_str!("testdata/ab.txt")).unwrap();
        assert_eq!((run.requests, run.rate, run.errors), (19_480, 19_427.91, 0));
        assert_eq!((run.seconds, run.mean_us, run.p50_us), (1.003, 824.0, 0.0));
        assert_eq!((run.p99_us, run.max_us), (7000.0, 19_000.0));
        assert!(read("apr_socket_recv: Connection refused (111)\n").is_none());
    }

    #[test]
    fn errors_of_every_kind_are_added() {
        let text = include_str!("testdata/ab.txt")
            .replace("Failed requests:        0", "Failed requests:        3\nWrite errors: 4")
            .replace("Keep-Alive requests:", "Non-2xx responses:      20\nKeep-Alive requests:");
        assert_eq!(read(&text).map(|run| run.errors), Some(27));
    }

    #[test]
    fn connections_are_kept_unless_each_request_has_its_own() {
        assert_eq!(words(8, 2, false).join(" "), "ab -q -k -c 8 -t 2 -n 2000000");
        assert_eq!(words(8, 2, true).join(" "), "ab -q -c 8 -t 2 -n 2000000");
    }
}
