//! The longest times for which workers' event loops kept everybody else waiting.
//!
//! Each worker writes its own, and only when it has a new record, so noting costs a comparison. A
//! reader takes the largest. Not here: what is counted for each request (`counters`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The records of one worker's event loop.
#[derive(Default)]
pub struct LoopPeaks {
    turn_us: AtomicU64,
    poll_bytes: AtomicU64,
}

/// The largest records of all workers since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongestTurns {
    /// Microseconds from a wake-up to the next look at the sockets.
    pub turn_us: u64,
    /// Work of one task before others had their turn, in bytes read or what takes as long.
    pub poll_bytes: u64,
}

static WORKERS: Mutex<Vec<&LoopPeaks>> = Mutex::new(Vec::new());

impl LoopPeaks {
    /// The records of a new worker. They outlive the worker.
    pub fn of_worker() -> &'static Self {
        let peaks: &'static Self = Box::leak(Box::default());
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(peaks);
        peaks
    }

    /// A new record for a turn. For the worker's own thread only, as the next one.
    pub fn note_turn(&self, turn_us: u64) {
        self.turn_us.store(turn_us, Ordering::Relaxed);
    }

    /// A new record for a task's work between two turns of others.
    pub fn note_poll(&self, poll_bytes: u64) {
        self.poll_bytes.store(poll_bytes, Ordering::Relaxed);
    }
}

impl LongestTurns {
    /// Of all workers.
    pub fn now() -> Self {
        let workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
        workers.iter().fold(Self::default(), |longest, worker| Self {
            turn_us: longest.turn_us.max(worker.turn_us.load(Ordering::Relaxed)),
            poll_bytes: longest.poll_bytes.max(worker.poll_bytes.load(Ordering::Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_record_of_all_workers_counts() {
        let (one, other) = (LoopPeaks::of_worker(), LoopPeaks::of_worker());
        one.note_turn(7);
        other.note_turn(5);
        other.note_poll(9);
        assert_eq!(LongestTurns::now(), LongestTurns { turn_us: 7, poll_bytes: 9 });
    }
}
