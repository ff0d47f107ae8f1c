//! The longest delays in workers' event loops.
//!
//! Each worker writes its own records, and only new maxima, so recording costs a comparison. A
//! reader takes the largest. Counts per request are in `counters`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The records of one worker's event loop.
#[derive(Default)]
pub struct LoopPeaks {
    turn_us: AtomicU64,
    poll_bytes: AtomicU64,
}

/// The largest records of all workers since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongestTurns {
    /// Microseconds from a wake-up to the next check of the sockets.
    pub turn_us: u64,
    /// Work of one task before it yields: bytes read, or work of the same duration.
    pub poll_bytes: u64,
}

static WORKERS: Mutex<Vec<&LoopPeaks>> = Mutex::new(Vec::new());

impl LoopPeaks {
    /// The records of a new worker, which are never freed.
    pub fn of_worker() -> &'static Self {
        let peaks: &'static Self = Box::leak(Box::default());
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(peaks);
        peaks
    }

    /// Sets a new record for a turn. Like the next method, only for the worker's own thread.
    pub fn note_turn(&self, turn_us: u64) {
        self.turn_us.store(turn_us, Ordering::Relaxed);
    }

    /// Sets a new record for a task's work in one poll.
    pub fn note_poll(&self, poll_bytes: u64) {
        self.poll_bytes.store(poll_bytes, Ordering::Relaxed);
    }
}

impl LongestTurns {
    /// The largest records of all workers.
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
