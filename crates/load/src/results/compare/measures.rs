//! The compared measures: of whole runs, and of their seconds.

use super::super::{Moment, Results, amounts};

/// A row of the comparison.
pub(super) struct Measure {
    pub(super) name: &'static str,
    /// Its value in a run; 0 without one.
    pub(super) of: fn(&Results) -> f64,
    /// Its value by seconds, if these show its noise.
    pub(super) by_second: Option<BySecond>,
    /// The distance of a value to the next one that can be distinguished.
    pub(super) step: fn(f64) -> f64,
    pub(super) show: fn(f64) -> String,
}

/// The step of exact values.
const SMOOTH: fn(f64) -> f64 = |_| 0.0;
/// The step of values of a histogram of microseconds with three digits.
const STEPS: fn(f64) -> f64 = |value| (value / 1024.0).max(1.0);

/// The value of a second and its weight, given the second and its length.
type BySecond = fn(&Moment, f64) -> (f64, f64);

/// The first is the headline of closed loops, ...
pub(super) const RATE: usize = 0;
/// ... this one is that of open loops, whose rate is given.
pub(super) const P99: usize = 4;
/// Another measure that is used elsewhere.
pub(super) const MEAN: usize = 1;
pub(super) const P50: usize = 2;

pub(super) const MEASURES: [Measure; 8] = [
    Measure {
        name: "requests/s",
        of: Results::replies_per_second,
        by_second: Some(|second, length| (second.replies as f64 / length, length)),
        step: SMOOTH,
        show: |rate| format!("{rate:.2}"),
    },
    Measure {
        name: "mean latency",
        of: |run| run.tally.latency_us.mean(),
        by_second: Some(|second, _| (second.mean_us, second.replies as f64)),
        step: SMOOTH,
        show: amounts::time_us,
    },
    Measure {
        name: "p50",
        of: |run| quantile(run, 0.5),
        by_second: Some(|second, _| (second.p50_us as f64, second.replies as f64)),
        step: STEPS,
        show: amounts::time_us,
    },
    Measure {
        name: "p90",
        of: |run| quantile(run, 0.9),
        by_second: None,
        step: STEPS,
        show: amounts::time_us,
    },
    Measure {
        name: "p99",
        of: |run| quantile(run, 0.99),
        by_second: Some(|second, _| (second.p99_us as f64, second.replies as f64)),
        step: STEPS,
        show: amounts::time_us,
    },
    Measure {
        name: "p99.9",
        of: |run| quantile(run, 0.999),
        by_second: None,
        step: STEPS,
        show: amounts::time_us,
    },
    Measure {
        name: "max",
        of: |run| run.tally.latency_us.max() as f64,
        by_second: None,
        step: STEPS,
        show: amounts::time_us,
    },
    Measure {
        name: "generator's CPU/request",
        of: |run| run.cpu.as_secs_f64() * 1e6 / run.tally.replies.max(1) as f64,
        by_second: None,
        step: SMOOTH,
        show: amounts::time_us,
    },
];

fn quantile(run: &Results, quantile: f64) -> f64 {
    run.tally.latency_us.value_at_quantile(quantile) as f64
}

/// The share of requests that failed.
pub(super) fn failed(run: &Results) -> f64 {
    run.tally.failures() as f64 / run.tally.requests().max(1) as f64
}

/// Consecutive seconds are similar, so they are combined: at least this many, ...
const BLOCK_SECONDS_MIN: usize = 2;
/// ... into at most this many blocks.
const BLOCKS_MAX: usize = 10;

/// The values of a run's blocks of seconds.
pub(super) fn blocks(run: &Results, by_second: BySecond) -> Vec<f64> {
    let begins = std::iter::once(0.0).chain(run.seconds.iter().map(|second| second.at));
    let seconds: Vec<_> = run
        .seconds
        .iter()
        .zip(begins)
        .filter(|(second, begin)| second.at > *begin)
        .map(|(second, begin)| by_second(second, second.at - begin))
        .collect();
    let count = (seconds.len() / BLOCK_SECONDS_MIN).min(BLOCKS_MAX);
    let bounds = |n: usize| n * seconds.len() / count;
    (0..count).filter_map(|n| mean(&seconds[bounds(n)..bounds(n + 1)])).collect()
}

fn mean(weighted: &[(f64, f64)]) -> Option<f64> {
    let weight: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let sum: f64 = weighted.iter().map(|(value, weight)| value * weight).sum();
    (weight > 0.0).then(|| sum / weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{moments, results};

    fn run(seconds: impl IntoIterator<Item = (f64, u64, u64)>) -> Results {
        Results { seconds: moments(seconds), ..results() }
    }

    fn of(measure: usize, run: &Results) -> Vec<f64> {
        blocks(run, MEASURES[measure].by_second.unwrap())
    }

    #[test]
    fn blocks_are_weighted() {
        let run = run([(1.0, 10, 100), (2.0, 30, 300), (3.0, 5, 50), (3.5, 5, 70), (3.6, 0, 1)]);
        assert_eq!(of(RATE, &run), [20.0, 10.0 / 1.6]);
        assert_eq!(of(P99, &run), [250.0, 60.0]);
    }

    #[test]
    fn blocks_without_replies_have_no_latency() {
        let run = run([(1.0, 0, 1), (2.0, 0, 1), (3.0, 5, 50), (4.0, 5, 50)]);
        assert_eq!(of(RATE, &run), [0.0, 5.0]);
        assert_eq!(of(P99, &run), [50.0]);
    }

    #[test]
    fn the_number_of_blocks_is_limited() {
        for (seconds, expected) in [(0, 0), (1, 0), (3, 1), (10, 5), (30, 10), (3600, 10)] {
            let seconds: Vec<_> = (0..seconds).map(|n| (f64::from(n) + 1.0, 1, 1)).collect();
            assert_eq!(of(RATE, &run(seconds)).len(), expected);
        }
    }

    #[test]
    fn headlines_have_their_indices() {
        let names = [RATE, MEAN, P50, P99].map(|measure| MEASURES[measure].name);
        assert_eq!(names, ["requests/s", "mean latency", "p50", "p99"]);
    }
}
