//! The highest rate at which a percentile of latency stays below a time.
//!
//! A first run in a closed loop measures the maximum rate. Beginning at half of it, the rate
//! doubles while the bound holds; then the interval between the highest rate that held and the
//! lowest that failed is bisected until they are close. A rate has failed only if it failed twice,
//! because the machine may have caused one failure.

use std::time::Duration;

use crate::results::{Judged, Results, amounts, doubts};
use crate::settings::Goal;

/// The ratio of the lowest failed rate to the highest one that held, at which the search ends.
const CLOSE: f64 = 1.05;
const RATE_MIN: f64 = 1.0;
/// The least share of the requested rate that replies must reach.
const REACHED: f64 = 0.98;
/// The tolerated share of failures.
const FAILURES_MAX: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Search {
    next: f64,
    held: Option<f64>,
    failed: Option<f64>,
    was_tried: bool,
}

impl Search {
    pub(crate) fn new(first: f64) -> Self {
        Self { next: readable(first), held: None, failed: None, was_tried: false }
    }

    /// The next rate to try; `None` at the end of the search.
    pub(crate) fn next(&self) -> Option<f64> {
        let is_close = match (self.held, self.failed) {
            (Some(held), Some(failed)) => failed / held <= CLOSE,
            (None, Some(failed)) => failed <= RATE_MIN,
            _ => false,
        };
        (!is_close).then_some(self.next)
    }

    /// Records the result of a step.
    pub(crate) fn record(&mut self, holds: bool) {
        if !holds && !self.was_tried {
            self.was_tried = true;
            return;
        }
        self.was_tried = false;
        match holds {
            true => self.held = Some(self.next),
            false => self.failed = Some(self.next),
        }
        let next = match (self.held, self.failed) {
            (Some(held), Some(failed)) => (held * failed).sqrt(),
            (Some(held), None) => held * 2.0,
            (None, Some(failed)) => failed / 2.0,
            (None, None) => self.next,
        };
        self.next = readable(next);
    }

    /// The highest rate that held.
    pub(crate) fn found(&self) -> Option<f64> {
        self.held
    }
}

/// Rounds a rate to four digits or a whole number, which is more precise than the search.
fn readable(rate: f64) -> f64 {
    let scale = 10_f64.powf((3.0 - rate.log10().floor()).max(0.0));
    (rate * scale).round() / scale
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepVerdict {
    Holds,
    /// The bound is exceeded, requests failed, or replies were slower than the requested rate.
    Fails(&'static str),
    /// Unknown, because the generator disturbed the measurement.
    Disturbed,
    /// Unknown, because it was interrupted.
    Interrupted,
}

impl Goal {
    pub(crate) fn judge(&self, results: &Results, rate: f64) -> StepVerdict {
        let tally = &results.tally;
        let failures = (tally.failures() + tally.unsent) as f64;
        let requests = tally.replies as f64 + failures;
        let holds = self.reached(results) <= self.below;
        if results.interrupted {
            StepVerdict::Interrupted
        } else if requests == 0.0 || failures > requests * FAILURES_MAX {
            StepVerdict::Fails("requests failed")
        } else if holds && results.replies_per_second() >= rate * REACHED {
            StepVerdict::Holds
        } else if !doubts(results).is_empty() {
            StepVerdict::Disturbed
        } else if holds {
            StepVerdict::Fails("too few replies a second")
        } else {
            StepVerdict::Fails("too slow")
        }
    }

    /// The verdict on a step, for the file of results.
    pub(crate) fn judged(&self, results: &Results, verdict: &StepVerdict) -> Judged {
        let measured = self.reached(results).as_micros() as f64;
        let below = amounts::time_us(self.below.as_micros() as f64);
        Judged {
            expectation: format!("p{}<{below}", self.percentile),
            kept: *verdict == StepVerdict::Holds,
            measured: (results.tally.replies > 0).then_some(measured),
            shown: amounts::time_us(measured),
        }
    }

    /// The percentile of a run.
    pub(crate) fn reached(&self, results: &Results) -> Duration {
        Duration::from_micros(self.percentile.of(&results.tally.latency_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates that are tried if rates up to `most` hold.
    fn tried(first: f64, most: f64) -> (Vec<f64>, Option<f64>) {
        let mut search = Search::new(first);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            rates.push(rate);
            search.record(rate <= most);
            assert!(rates.len() < 100, "it comes to an end");
        }
        (rates, search.found())
    }

    #[test]
    fn the_search_converges() {
        for most in [1200.0, 4999.0, 5000.0, 40_000.0] {
            let (rates, found) = tried(5000.0, most);
            let found = found.expect("there is one");
            assert!(found <= most && most < found * CLOSE, "{most}: {found} of {rates:?}");
        }
    }

    #[test]
    fn a_server_that_is_always_too_slow() {
        let (rates, found) = tried(8.0, 0.0);
        assert_eq!((found, rates), (None, vec![8.0, 8.0, 4.0, 4.0, 2.0, 2.0, 1.0, 1.0]));
    }

    #[test]
    fn rates_can_be_read() {
        for (rate, expected) in [(1.23456, 1.235), (10.4881, 10.49), (10_351.255_37, 10_351.0)] {
            assert_eq!(Search::new(rate).next(), Some(expected));
        }
    }

    #[test]
    fn one_failure_is_repeated() {
        let mut search = Search::new(100.0);
        search.record(false);
        assert_eq!(search.next(), Some(100.0));
        search.record(true);
        assert_eq!((search.found(), search.next()), (Some(100.0), Some(200.0)));
    }
}
