//! Combines the counts of all threads per second.
//!
//! A second is complete once every thread has reported it or has ended before. Only incomplete
//! seconds and the newest complete one are kept in full, because a run may take hours.

use std::collections::VecDeque;

use crate::results::{Moment, RunStats, Second};

/// The shortest rest at the end that counts as a second of its own. Ends are shown with one
/// decimal, so they stay different.
const REST_MIN_S: f64 = 0.1;

/// The counts of all threads per second.
pub(super) struct SecondCounts {
    threads: usize,
    /// The number of reported seconds of each ended thread.
    ended: Vec<usize>,
    /// The counts of each incomplete second, and the number of threads that have reported it.
    open: VecDeque<(RunStats, usize)>,
    /// The newest complete second.
    newest: Option<Second>,
    before: Vec<Moment>,
    /// The sum of all seconds.
    tally: RunStats,
    over: usize,
}

impl SecondCounts {
    /// Empty counts of a number of threads.
    pub(super) fn of(threads: usize) -> Self {
        Self {
            threads,
            ended: Vec::new(),
            open: VecDeque::new(),
            newest: None,
            before: Vec::new(),
            tally: RunStats::default(),
            over: 0,
        }
    }

    /// A thread reports its second `number`, counted from 1.
    pub(super) fn report(&mut self, number: usize, tally: &RunStats) {
        self.add(number, tally, 1);
    }

    /// A thread has ended; `rest` are its counts since its last reported second.
    pub(super) fn ended(&mut self, reported: usize, rest: &RunStats) {
        self.ended.push(reported);
        self.add(reported + 1, rest, 0);
    }

    fn add(&mut self, number: usize, tally: &RunStats, reported: usize) {
        let at = number.saturating_sub(self.over + 1);
        while self.open.len() <= at {
            self.open.push_back(Default::default());
        }
        self.open[at].0.add(tally);
        self.open[at].1 += reported;
    }

    /// The next second, if it is complete.
    pub(super) fn next(&mut self) -> Option<&Second> {
        let (_, reported) = self.open.front()?;
        let gone = self.ended.iter().filter(|seconds| **seconds <= self.over).count();
        if *reported == 0 || reported + gone < self.threads {
            return None;
        }
        self.close(f64::MAX)
    }

    /// Closes the oldest incomplete second, which ended at `end` at the latest.
    fn close(&mut self, end: f64) -> Option<&Second> {
        let (tally, _) = self.open.pop_front()?;
        self.keep();
        self.over += 1;
        self.newest = Some(Second { at: (self.over as f64).min(end), tally });
        self.newest.as_ref()
    }

    fn keep(&mut self) {
        if let Some(second) = self.newest.take() {
            self.tally.add(&second.tally);
            self.before.push(Moment::from(&second));
        }
    }

    /// All seconds and their sum, for a run of `elapsed` seconds. `watch` gets the last ones of a
    /// run of at least a second.
    pub(super) fn finish(
        mut self,
        elapsed: f64,
        watch: &mut dyn FnMut(&Second),
    ) -> (Vec<Moment>, RunStats) {
        while let Some((tally, _)) = self.open.front() {
            // A short rest at the end belongs to the previous second.
            match &mut self.newest {
                Some(newest) if elapsed - newest.at < REST_MIN_S => {
                    newest.tally.add(tally);
                    self.open.pop_front();
                }
                _ => {
                    self.close(elapsed).filter(|_| elapsed >= 1.0).map(&mut *watch);
                }
            }
        }
        self.keep();
        (self.before, self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(replies: u64) -> RunStats {
        RunStats { replies, ..RunStats::default() }
    }

    fn next(seconds: &mut SecondCounts) -> Option<(f64, u64)> {
        seconds.next().map(|second| (second.at, second.tally.replies))
    }

    /// The end and the replies of each second, and all replies.
    fn finish(seconds: SecondCounts, elapsed: f64) -> (Vec<(f64, u64)>, u64) {
        let (seconds, tally) = seconds.finish(elapsed, &mut |_| {});
        (seconds.iter().map(|second| (second.at, second.replies)).collect(), tally.replies)
    }

    #[test]
    fn a_second_is_complete_when_all_threads_have_reported_it() {
        let mut seconds = SecondCounts::of(2);
        seconds.report(1, &tally(1));
        seconds.report(2, &tally(10));
        assert_eq!(next(&mut seconds), None);
        seconds.report(1, &tally(100));
        assert_eq!(next(&mut seconds), Some((1.0, 101)));
        assert_eq!(next(&mut seconds), None);
        seconds.report(2, &tally(1000));
        assert_eq!(next(&mut seconds), Some((2.0, 1010)));
        assert_eq!(finish(seconds, 2.0), (vec![(1.0, 101), (2.0, 1010)], 1111));
    }

    #[test]
    fn ended_threads_are_not_waited_for() {
        let mut seconds = SecondCounts::of(2);
        seconds.report(1, &tally(1));
        seconds.ended(0, &tally(10));
        assert_eq!(next(&mut seconds), Some((1.0, 11)));
        seconds.report(2, &tally(100));
        assert_eq!(next(&mut seconds), Some((2.0, 100)));
        seconds.ended(2, &tally(1000));
        assert_eq!(next(&mut seconds), None, "nobody knows how long it was");
        assert_eq!(finish(seconds, 2.5), (vec![(1.0, 11), (2.0, 100), (2.5, 1000)], 1111));
    }

    #[test]
    fn a_short_rest_belongs_to_the_second_before() {
        let mut seconds = SecondCounts::of(1);
        seconds.report(1, &tally(1));
        assert_eq!(next(&mut seconds), Some((1.0, 1)));
        seconds.ended(1, &tally(10));
        assert_eq!(finish(seconds, 1.09), (vec![(1.0, 11)], 11));
    }

    #[test]
    fn the_last_second_is_shown_except_of_a_short_run() {
        let seen = |elapsed| {
            let mut seconds = SecondCounts::of(1);
            seconds.ended(0, &tally(7));
            let mut seen = Vec::new();
            seconds.finish(elapsed, &mut |second| seen.push((second.at, second.tally.replies)));
            seen
        };
        assert_eq!(seen(1.0), [(1.0, 7)]);
        assert_eq!(seen(0.5), []);
    }

    #[test]
    fn a_run_shorter_than_a_second_is_one() {
        let mut seconds = SecondCounts::of(2);
        seconds.ended(0, &tally(1));
        seconds.ended(0, &tally(2));
        assert_eq!(finish(seconds, 0.001), (vec![(0.001, 3)], 3));
    }
}
