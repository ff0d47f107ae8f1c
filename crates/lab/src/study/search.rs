//! The search for the highest rate of each row whose latency keeps a bound.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudySearch {
    /// The bound, as `weir load --search` takes it: `p99=10ms`.
    pub(crate) bound: String,
    /// The length of a step, in which one rate is tried.
    #[serde(default = "step_ms")]
    pub(crate) step_ms: u64,
    /// The searches of each row, for `--quick` and `--full`.
    #[serde(default = "quick")]
    pub(crate) quick: usize,
    #[serde(default = "full")]
    pub(crate) full: usize,
}

/// The lengths of a step: shorter ones have no high percentiles, longer ones take too long.
const STEP_MS: std::ops::RangeInclusive<u64> = 100..=60_000;
/// The most searches of a row.
const REPEATS_MAX: usize = 100;

fn step_ms() -> u64 {
    500
}

fn quick() -> usize {
    3
}

fn full() -> usize {
    8
}

impl StudySearch {
    /// A search with the usual steps and repeats.
    pub(crate) fn new(bound: String) -> Self {
        Self { bound, step_ms: step_ms(), quick: quick(), full: full() }
    }

    /// The first problem.
    pub(crate) fn problem(&self) -> Option<String> {
        if !is_bound(&self.bound) {
            return Some(format!("search.bound \"{}\" is not of the form p99=10ms", self.bound));
        }
        if !STEP_MS.contains(&self.step_ms) {
            let (from, to) = (STEP_MS.start(), STEP_MS.end());
            return Some(format!("search.step_ms must be from {from} to {to}"));
        }
        let is_allowed = |repeats: usize| (1..=REPEATS_MAX).contains(&repeats);
        (!is_allowed(self.quick) || !is_allowed(self.full))
            .then(|| format!("search.quick and search.full must be from 1 to {REPEATS_MAX}"))
    }

    /// The bound in tables: `p99 < 10ms`.
    pub(crate) fn told(&self) -> String {
        self.bound.replace('=', " < ")
    }
}

/// The units of times. `weir load` reads more; these suffice for latencies.
const UNITS: [&str; 3] = ["us", "ms", "s"];

fn is_bound(text: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    let Some((percentile, time)) = text.split_once('=') else { return false };
    let percentile = percentile.strip_prefix('p').and_then(number);
    let time = UNITS.iter().find_map(|unit| number(time.strip_suffix(unit)?));
    percentile.is_some_and(|percentile| percentile < 100.0)
        && time.is_some_and(|time| time.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked_before_anything_runs() {
        for bound in ["p99=10ms", "p50=1s", "p99.9=250us", "p99=1.5ms"] {
            assert_eq!(StudySearch::new(bound.to_owned()).problem(), None, "{bound}");
        }
        for bound in ["", "p99", "99=1ms", "p100=1ms", "p99=1", "p99=0ms", "p99=infms", "pNaN=1s"] {
            let problem = StudySearch::new(bound.to_owned()).problem().unwrap_or_default();
            assert!(problem.contains("is not of the form p99=10ms"), "{bound}: {problem}");
        }
        let search = StudySearch::new("p99=10ms".to_owned());
        assert_eq!(search.told(), "p99 < 10ms");
        for wrong in [
            StudySearch { step_ms: 9, ..search.clone() },
            StudySearch { quick: 0, ..search.clone() },
            StudySearch { full: 101, ..search },
        ] {
            assert!(wrong.problem().is_some(), "{wrong:?}");
        }
    }
}
