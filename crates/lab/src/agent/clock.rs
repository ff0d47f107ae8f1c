//! How far the clock of an agent's machine is from this one's.
//!
//! Nothing depends on it: latencies and rates are the generator's alone, and accounts are
//! differences on one machine. The report has it so that logs of the machines can be compared.

use std::time::{SystemTime, UNIX_EPOCH};

/// The times that are asked for.
const ROUNDS: usize = 8;

/// The difference between two clocks, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClockOffset {
    /// Positive: the other clock is ahead.
    pub(crate) offset_us: f64,
    /// Half of the round trip, by which the offset may be wrong.
    pub(crate) error_us: f64,
}

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64
}

/// Asks for the other clock several times; the shortest round trip counts.
pub(super) fn measure(ask: &mut dyn FnMut() -> Result<u64, String>) -> Result<ClockOffset, String> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let before = now_ns();
        let other = ask()?;
        rounds.push(offset(before, other, now_ns()));
    }
    let best = rounds.into_iter().min_by(|a, b| a.error_us.total_cmp(&b.error_us));
    Ok(best.unwrap_or_default())
}

fn offset(before: u64, other: u64, after: u64) -> ClockOffset {
    let us = |ns: i128| ns as f64 / 1000.0;
    let (before, other, after) = (i128::from(before), i128::from(other), i128::from(after));
    // A clock that is set back meanwhile makes no negative round trip.
    let round = (after - before).max(0);
    ClockOffset { offset_us: us(2 * other - before - after) / 2.0, error_us: us(round) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_that_of_the_middle_of_a_round_trip() {
        let ahead = ClockOffset { offset_us: 5.0, error_us: 1.0 };
        assert_eq!(offset(10_000, 16_000, 12_000), ahead);
        assert_eq!(offset(10_000, 6_000, 12_000).offset_us, -5.0);
        assert_eq!(offset(12_000, 6_000, 10_000).error_us, 0.0);
        let own = measure(&mut || Ok(now_ns())).unwrap();
        assert!(own.offset_us.abs() <= own.error_us, "{own:?}");
        assert!(measure(&mut || Err("gone".to_owned())).is_err());
    }
}
