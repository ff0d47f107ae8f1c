//! A schedule of pauses in which nothing is answered, to test load generators.
//!
//! Time counts from the first request (after a reset, from the next), in periods; the pause is the
//! last part of each. Responses due within a pause are sent at its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Pause {
    length_us: u64,
    every_us: u64,
    origin: Instant,
    /// Microseconds from the origin to the first request.
    first_us: AtomicU64,
}

/// Before the first request.
const NONE: u64 = u64::MAX;

impl Pause {
    /// A pause of `length` in every period of `every`, which is longer.
    pub(super) fn new(length: Duration, every: Duration) -> Self {
        let (length_us, every_us) = (length.as_micros() as u64, every.as_micros() as u64);
        debug_assert!(length_us < every_us, "settings refuse it");
        Self { length_us, every_us, origin: Instant::now(), first_us: AtomicU64::new(NONE) }
    }

    pub(super) fn note(&self, arrived: Instant) {
        if self.first_us.load(Ordering::Relaxed) == NONE {
            let us = self.since_origin(arrived);
            // Another thread may have been first.
            let _ = self.first_us.compare_exchange(NONE, us, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Restarts the schedule with the next request.
    pub(super) fn reset(&self) {
        self.first_us.store(NONE, Ordering::Relaxed);
    }

    /// The end of the pause, if there is one at that time.
    pub(super) fn end(&self, now: Instant) -> Option<Instant> {
        let first_us = self.first_us.load(Ordering::Relaxed);
        let since_us = self.since_origin(now).checked_sub(first_us)?;
        let left_us = self.every_us - since_us % self.every_us;
        let end_us = first_us + since_us + left_us;
        (left_us <= self.length_us).then(|| self.origin + Duration::from_micros(end_us))
    }

    fn since_origin(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_pause_is_the_last_part_of_a_period() {
        let pause = Pause::new(ms(1000), ms(10_000));
        let first = pause.origin + ms(500);
        assert_eq!(pause.end(first), None, "no request yet");
        pause.note(first);
        pause.note(first + ms(300));
        for (at, end) in [
            (0, None),
            (8999, None),
            (9000, Some(10_000)),
            (9999, Some(10_000)),
            (10_000, None),
            (29_001, Some(30_000)),
        ] {
            assert_eq!(pause.end(first + ms(at)), end.map(|end| first + ms(end)), "{at}");
        }
    }

    #[test]
    fn a_reset_restarts_the_schedule() {
        let pause = Pause::new(ms(1), ms(10));
        pause.note(pause.origin);
        pause.reset();
        pause.note(pause.origin + ms(5));
        assert_eq!(pause.end(pause.origin + ms(9)), None);
        assert!(pause.end(pause.origin + ms(14)).is_some());
    }
}
