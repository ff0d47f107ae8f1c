//! What the backend's log tells: the latencies of requests whose intended starts are known, and
//! whether the backend did what it was told.

use super::schedule::{answer_us, start_us};

/// A request at the backend, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BackendRequest {
    arrived_us: u64,
    /// The reply's first byte was about to be written.
    begun_us: u64,
    written_us: u64,
}

/// All requests in the order in which they came, which is that of their starts.
#[derive(Debug, PartialEq)]
pub(super) struct BackendLog(Vec<BackendRequest>);

impl BackendLog {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let line = |(line, number): (&str, usize)| {
            answer(line).ok_or_else(|| format!("line {number} of the backend's log: {line}"))
        };
        let mut answers: Vec<_> = text.lines().zip(1..).map(line).collect::<Result<_, _>>()?;
        answers.sort_by_key(|answer| answer.arrived_us);
        Ok(Self(answers))
    }

    pub(super) fn requests(&self) -> usize {
        self.0.len()
    }

    /// From when each request was to start until its reply was written.
    pub(super) fn latencies_us(&self) -> Vec<u64> {
        let began_us = self.began_us();
        let latency = |(number, answer): (u64, &BackendRequest)| {
            answer.written_us.saturating_sub(began_us + start_us(number))
        };
        (0..).zip(&self.0).map(latency).collect()
    }

    /// When the first request was to start. Nothing arrives before it is sent, so it is the latest
    /// moment by which none came too early: that of the request which was under way the shortest.
    fn began_us(&self) -> u64 {
        let began = |(number, answer): (u64, &BackendRequest)| {
            answer.arrived_us.saturating_sub(start_us(number))
        };
        (0..).zip(&self.0).map(began).min().unwrap_or_default()
    }

    /// By how much an answer was late at most: after the schedule, and after the answer before it,
    /// for those that are due together are written one by one.
    pub(super) fn late_us(&self) -> u64 {
        let first_us = self.0.first().map_or(0, |first| first.arrived_us);
        let due = |(number, answer): (u64, &BackendRequest)| {
            (first_us + answer_us(number, answer.arrived_us - first_us), *answer)
        };
        let mut due: Vec<_> = (0..).zip(&self.0).map(due).collect();
        due.sort_by_key(|(_, answer)| answer.begun_us);
        let (mut late_us, mut free_us) = (0, 0);
        for (due_us, answer) in due {
            late_us = late_us.max(answer.written_us.saturating_sub(due_us.max(free_us)));
            free_us = answer.written_us;
        }
        late_us
    }
}

/// `arrived begun written status ...`
fn answer(line: &str) -> Option<BackendRequest> {
    let mut words = line.split(' ');
    let mut time_us = || words.next()?.parse().ok();
    let answer =
        BackendRequest { arrived_us: time_us()?, begun_us: time_us()?, written_us: time_us()? };
    (words.next() == Some("200")).then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::latency::schedule;

    const BEGAN_US: u64 = 1_795_204_191_798_000;

    /// A backend that is as good as its word, but for the request that is the `slow`th.
    fn log(requests: u64, slow: u64) -> BackendLog {
        let mut lines: Vec<String> = (0..requests)
            .map(|number| {
                let late_us = if number == slow { 3000 } else { 0 };
                let begun_us = BEGAN_US + answer_us(number, start_us(number)) + late_us;
                let arrived_us = BEGAN_US + start_us(number);
                format!("{arrived_us} {begun_us} {begun_us} 200 79 GET /\n")
            })
            .collect();
        lines.reverse();
        BackendLog::parse(&lines.concat()).unwrap()
    }

    #[test]
    fn a_backend_without_fault_has_the_latencies_of_the_schedule() {
        let log = log(2400, 2400);
        assert_eq!((log.requests(), log.late_us()), (2400, 0));
        assert_eq!(log.latencies_us(), schedule::latencies_us(2400));
    }

    #[test]
    fn a_late_answer_is_seen() {
        let log = log(100, 50);
        assert_eq!(log.late_us(), 3000);
        assert_eq!(log.latencies_us()[50], schedule::latencies_us(100)[50] + 3000);
    }

    #[test]
    fn latency_counts_from_the_intended_start() {
        let (first, second) = (BEGAN_US + 40, BEGAN_US + start_us(1) + 2040);
        let text = format!(
            "{first} 0 {} 200 79 GET /\n{second} 0 {} 200 79 GET /\n",
            first + 52_000,
            second + 52_000
        );
        assert_eq!(BackendLog::parse(&text).unwrap().latencies_us(), [52_000, 54_000]);
    }

    #[test]
    fn what_is_no_answer() {
        for line in ["", "1 2 3", "1 2 x 200 79 GET /", "1 2 3 500 79 GET /"] {
            assert!(BackendLog::parse(&format!("1 2 3 200 79 GET /\n{line}\n")).is_err(), "{line}");
        }
    }
}
