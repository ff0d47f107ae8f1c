//! When the events of a turn arrived, which the kernel does not say.
//!
//! A worker that sleeps wakes at once. While it is busy, events wait for the end of its turn, so
//! those of the next turn are taken to have arrived in the middle of the last one.

use std::cell::Cell;

use crate::clock;

/// A look at the events that takes longer than this was a sleep.
const SLEPT_NS: u64 = 50_000;

thread_local! {
    /// The last turn, up to the worker's waking for this one.
    static LAST: Cell<FinishedTurn> = const { Cell::new(FinishedTurn::NONE) };
}

/// A turn and the sleep after it, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy)]
struct FinishedTurn {
    began_ns: u64,
    ended_ns: u64,
    woke_ns: u64,
}

/// Records the last turn.
#[inline]
pub(super) fn note_turn(began_ns: u64, ended_ns: u64, woke_ns: u64) {
    LAST.set(FinishedTurn { began_ns, ended_ns, woke_ns });
}

/// When the events of this turn arrived, by the worker's clock, as far as can be known.
pub fn arrived_ms() -> u64 {
    match clock::is_stopped() {
        true => clock::now_ms(),
        false => clock::elapsed_ms(LAST.get().arrived_ns()),
    }
}

impl FinishedTurn {
    const NONE: Self = Self { began_ns: 0, ended_ns: 0, woke_ns: 0 };

    fn arrived_ns(self) -> u64 {
        match self.woke_ns - self.ended_ns > SLEPT_NS {
            true => self.woke_ns,
            false => self.began_ns.midpoint(self.ended_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_arrive_when_a_sleeping_worker_wakes() {
        let turn = FinishedTurn { began_ns: 1_000, ended_ns: 2_000, woke_ns: 9_000_000 };
        assert_eq!(turn.arrived_ns(), 9_000_000);
    }

    #[test]
    fn events_arrive_in_the_middle_of_a_busy_workers_turn() {
        let turn = FinishedTurn { began_ns: 1_000_000, ended_ns: 9_000_000, woke_ns: 9_001_000 };
        assert_eq!(turn.arrived_ns(), 5_000_000);
    }
}
