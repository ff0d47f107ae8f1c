//! The latencies of one turn, small enough to be kept for every turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Binary digits that are kept of a latency: ranges are at most 1/128 as wide as their values.
const DIGITS: u32 = 8;

/// How many requests took how long: the last microsecond of each range of latencies that occurred,
/// with the number of its requests. Latencies below 256 us have ranges of 1 us.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct LatencyCounts(Vec<(u64, u64)>);

impl LatencyCounts {
    /// Counts latencies; each is given with the number of its requests.
    pub(crate) fn of(latencies: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut counts = BTreeMap::<u64, u64>::new();
        for (us, requests) in latencies {
            let sum = counts.entry(LatencyRange::of(us).last).or_default();
            *sum = sum.saturating_add(requests);
        }
        Self(counts.into_iter().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges with their numbers of requests.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (LatencyRange, f64)> {
        self.0.iter().map(|&(us, requests)| (LatencyRange::of(us), requests as f64))
    }
}

/// Latencies that are not told apart, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LatencyRange {
    pub(super) first: u64,
    last: u64,
}

impl LatencyRange {
    fn of(us: u64) -> Self {
        let dropped = (u64::BITS - us.leading_zeros()).saturating_sub(DIGITS);
        let first = us >> dropped << dropped;
        Self { first, last: first + ((1 << dropped) - 1) }
    }

    pub(super) fn width(self) -> f64 {
        (self.last - self.first) as f64 + 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_latencies_are_counted_together() {
        let counts = LatencyCounts::of([(10_020, 1), (255, 2), (10_000, 3), (254, 1), (9_983, 1)]);
        assert_eq!(counts.0, [(254, 1), (255, 2), (9_983, 1), (10_047, 4)]);
        assert_eq!(LatencyCounts::of(counts.0.clone()), counts, "counted again");
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(json, "[[254,1],[255,2],[9983,1],[10047,4]]");
        assert_eq!(serde_json::from_str::<LatencyCounts>(&json).unwrap(), counts);
    }

    #[test]
    fn ranges_are_narrow_and_adjoin() {
        for us in [0, 1, 255, 256, 1_000, 123_456, 1 << 40, u64::MAX] {
            let range = LatencyRange::of(us);
            assert!((range.first..=range.last).contains(&us), "{us}: {range:?}");
            assert!(range.width() <= (us as f64 / 128.0).max(1.0), "{us}: {range:?}");
            if let Some(next) = range.last.checked_add(1) {
                assert_eq!(LatencyRange::of(next).first, next);
            }
        }
    }
}
