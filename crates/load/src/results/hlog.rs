//! The log of interval histograms (`.hlog`) that the tools around HdrHistogram read.
//!
//! It has an interval for each second, with latencies in microseconds. The column of maxima, which
//! is for people, is in milliseconds, with the divisor in a comment. The format cannot contain
//! errors and rates.

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use super::Results;

/// Microseconds per millisecond, the unit of maxima.
const MAX_VALUE_DIVISOR: f64 = 1000.0;

/// The heading of columns, as HdrHistogram's own writer has it.
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// The log as text. Serialising counts that exceed the format is an error.
pub fn hlog(results: &Results) -> Result<String, String> {
    let mut log = Vec::new();
    write(results, &mut log).map_err(|error| format!("no .hlog was written: {error}"))?;
    String::from_utf8(log).map_err(|error| error.to_string())
}

fn write(results: &Results, log: &mut Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
    let mut serializer = V2DeflateSerializer::new();
    let began = UNIX_EPOCH + Duration::from_millis(results.began_unix_ms);
    IntervalLogWriterBuilder::new()
        .add_comment(&format!("[weir load {}: latency in microseconds]", results.urls.join(" ")))
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(began)
        .with_base_time(began)
        .begin_log_with(log, &mut serializer)?;
    log.extend_from_slice(LEGEND.as_bytes());

    // The writer writes no legend, so another writer continues after it.
    let mut intervals = IntervalLogWriterBuilder::new()
        .with_max_value_divisor(MAX_VALUE_DIVISOR)
        .begin_log_with(log, &mut serializer)?;
    let mut last_at = 0.0;
    for second in &results.seconds {
        let start = Duration::try_from_secs_f64(last_at)?;
        let length = Duration::try_from_secs_f64(second.at - last_at)?;
        intervals.write_histogram(&second.latencies()?, start, length, None)?;
        last_at = second.at;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::results::testing::{moments, results};

    #[test]
    fn a_written_log_is_read_back() {
        let mut results = results();
        results.began_unix_ms = 1_700_000_000_250;
        results.seconds = moments([(1.0, 3, 120), (2.5, 5, 70_000), (3.0, 0, 1)]);
        let log = hlog(&results).unwrap();
        let entries: Vec<_> =
            IntervalLogIterator::new(log.as_bytes()).map(|entry| entry.unwrap()).collect();
        let began = Duration::from_millis(1_700_000_000_250);
        assert_eq!(entries[..2], [LogEntry::StartTime(began), LogEntry::BaseTime(began)]);
        let intervals: Vec<_> = entries[2..].iter().map(interval).collect();
        let expected =
            [(0, 1000, 0.12, 3, 120), (1000, 1500, 70.015, 5, 70_015), (2500, 500, 0.0, 0, 0)];
        assert_eq!(intervals, expected);
    }

    /// Start and length in milliseconds, the shown maximum, and the real count and maximum.
    fn interval(entry: &LogEntry<'_>) -> (u128, u128, f64, u64, u64) {
        let LogEntry::Interval(interval) = entry else { panic!("{entry:?}") };
        let bytes = base64(interval.encoded_histogram());
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        let (start, length) = (interval.start_timestamp(), interval.duration());
        (start.as_millis(), length.as_millis(), interval.max(), read.len(), read.max())
    }

    fn base64(text: &str) -> Vec<u8> {
        let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bits, mut count, mut bytes) = (0, 0, Vec::new());
        for digit in text.trim_end_matches('=').chars() {
            bits = bits << 6 & 0xffff | digits.find(digit).unwrap();
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        bytes
    }

    #[test]
    fn the_head_has_the_usual_format() {
        let log = hlog(&results()).unwrap();
        let expected = "\
#[weir load http://127.0.0.1:8080/: latency in microseconds]
#[Histogram log format version 1.3]
#[StartTime: 1700000000.000 (seconds since epoch)]
#[BaseTime: 1700000000.000 (seconds since epoch)]
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
#[MaxValueDivisor: 1000.000]
";
        assert_eq!(log, expected);
    }

    #[test]
    fn seconds_that_go_back_are_refused() {
        let mut results = results();
        results.seconds = moments([(2.0, 1, 1), (1.0, 1, 1)]);
        assert!(hlog(&results).is_err());
    }
}
