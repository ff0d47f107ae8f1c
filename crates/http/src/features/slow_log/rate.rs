//! The most lines of a slow log in a second or a minute, by all workers of the process.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conf::units;

/// A limit and the lines of the current period.
pub(super) struct LineRate {
    lines_max: u64,
    period_ms: u64,
    /// Locked for slow requests alone.
    state: Mutex<LinesWritten>,
}

#[derive(Default)]
struct LinesWritten {
    period: u64,
    written: u64,
    /// Lines that were left out and not yet told of.
    left_out: u64,
}

/// A line was left out; `is_first`: nobody was to tell of it before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) is_first: bool,
}

impl LineRate {
    pub(super) fn new(lines_max: u64, period_ms: u64) -> Self {
        Self { lines_max, period_ms, state: Mutex::default() }
    }

    /// `10r/s` or `10r/m`.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (number, period_ms) = match text {
            [number @ .., b'r', b'/', b's'] => (number, 1000),
            [number @ .., b'r', b'/', b'm'] => (number, 60_000),
            _ => return None,
        };
        let lines_max = units::number(number).filter(|number| *number > 0)?;
        Some(Self::new(lines_max, period_ms))
    }

    /// How long lines count together.
    pub(super) fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    /// Whether another line may be written now, and how many were left out before it.
    pub(super) fn admit(&self, now_ms: u64) -> Result<u64, LeftOut> {
        let mut state = self.lock();
        let period = now_ms / self.period_ms;
        if state.period != period {
            (state.period, state.written) = (period, 0);
        }
        if state.written < self.lines_max {
            state.written += 1;
            return Ok(std::mem::take(&mut state.left_out));
        }
        state.left_out += 1;
        Err(LeftOut { is_first: state.left_out == 1 })
    }

    /// The number of lines left out since this was last told.
    pub(super) fn take_left_out(&self) -> u64 {
        std::mem::take(&mut self.lock().left_out)
    }

    fn lock(&self) -> MutexGuard<'_, LinesWritten> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for LineRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = if self.period_ms == 1000 { 's' } else { 'm' };
        write!(f, "rate={}r/{period}", self.lines_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_so_many_lines_and_the_next_tells_of_the_others() {
        let rate = LineRate::parse(b"2r/s").unwrap();
        let left_out = |is_first| Err(LeftOut { is_first });
        assert_eq!(
            [5000, 5001, 5002, 5999].map(|now_ms| rate.admit(now_ms)),
            [Ok(0), Ok(0), left_out(true), left_out(false),]
        );
        assert_eq!([6000, 6000].map(|now_ms| rate.admit(now_ms)), [Ok(2), Ok(0)]);
        assert_eq!(rate.admit(6001), left_out(true));
        assert_eq!((rate.take_left_out(), rate.take_left_out()), (1, 0));
    }

    #[test]
    fn a_rate_is_a_number_of_lines_a_second_or_a_minute() {
        assert_eq!(LineRate::parse(b"3r/m").unwrap().period(), Duration::from_secs(60));
        for text in ["", "1", "0r/s", "r/s", "-1r/s", "1r/h"] {
            assert!(LineRate::parse(text.as_bytes()).is_none(), "{text}");
        }
    }
}
