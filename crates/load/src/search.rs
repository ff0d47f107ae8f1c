//! The highest rate at which a percentile of latency stays below a time.
//!
//! A first run in a closed loop says what the server can do at most. From half of that on the rate
//! doubles while the bound holds, and is halved between the highest that held and the lowest that
//! did not, until they are close. A rate has failed only if it has failed twice: once may be the
//! machine's doing.

use std::time::Duration;

use crate::results::{Results, doubts};
use crate::settings::Goal;

/// The search is over once the lowest rate that failed is so much of the highest that held.
const CLOSE: f64 = 1.05;
/// It is given up below.
const RATE_MIN: f64 = 1.0;
/// Replies a second that must come, of those asked for.
const REACHED: f64 = 0.98;
/// Failures that are let pass, of all requests.
const FAILURES_MAX: f64 = 0.001;

/// Which rate is tried next: arithmetic alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Search {
    next: f64,
    held: Option<f64>,
    failed: Option<f64>,
    was_tried: bool,
}

impl Search {
    /// Begins with that rate.
    pub(crate) fn new(first: f64) -> Self {
        Self { next: readable(first), held: None, failed: None, was_tried: false }
    }

    /// The rate to try; `None`: it is found, or there is none.
    pub(crate) fn next(&self) -> Option<f64> {
        let is_close = match (self.held, self.failed) {
            (Some(held), Some(failed)) => failed / held <= CLOSE,
            (None, Some(failed)) => failed <= RATE_MIN,
            _ => false,
        };
        (!is_close).then_some(self.next)
    }

    /// How that went.
    pub(crate) fn learn(&mut self, holds: bool) {
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

/// The rate in four digits or whole: closer to it than any other that is tried.
fn readable(rate: f64) -> f64 {
    let scale = 10_f64.powf((3.0 - rate.log10().floor()).max(0.0));
    (rate * scale).round() / scale
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepVerdict {
    /// The bound holds.
    Holds,
    /// It does not, or requests failed, or replies did not come as fast as asked for.
    Fails(&'static str),
    /// Nobody knows: the generator was in the way.
    Disturbed,
    /// Nobody knows: it was not over.
    Interrupted,
}

impl Goal {
    /// What a run at `rate` says about it.
    pub(crate) fn judge(&self, results: &Results, rate: f64) -> StepVerdict {
        let tally = &results.tally;
        let failures = (tally.failures() + tally.unsent) as f64;
        let asked = tally.replies as f64 + failures;
        let holds = self.reached(results) <= self.below;
        if results.interrupted {
            StepVerdict::Interrupted
        } else if asked == 0.0 || failures > asked * FAILURES_MAX {
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

    /// The percentile of a run.
    pub(crate) fn reached(&self, results: &Results) -> Duration {
        Duration::from_micros(self.percentile.of(&results.tally.latency_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rate that is tried, if rates up to `most` hold.
    fn tried(first: f64, most: f64) -> (Vec<f64>, Option<f64>) {
        let mut search = Search::new(first);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            rates.push(rate);
            search.learn(rate <= most);
            assert!(rates.len() < 100, "it comes to an end");
        }
        (rates, search.found())
    }

    #[test]
    fn it_comes_close_from_both_sides() {
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
    fn one_failure_is_none() {
        let mut search = Search::new(100.0);
        search.learn(false);
        assert_eq!(search.next(), Some(100.0));
        search.learn(true);
        assert_eq!((search.found(), search.next()), (Some(100.0), Some(200.0)));
    }
}
