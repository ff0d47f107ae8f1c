//! Longest delays in this worker's event loop, reported to [`observe`].
//!
//! A task's work is counted as it is done; the duration of a turn takes one reading of the clock.

use std::cell::{Cell, OnceCell};

use observe::LoopPeaks;

use crate::clock;

thread_local! {
    static OWN: OnceCell<&'static LoopPeaks> = const { OnceCell::new() };
    static LONGEST_TURN_NS: Cell<u64> = const { Cell::new(0) };
    static LONGEST_POLL: Cell<u64> = const { Cell::new(0) };
    static ON_TURN: Cell<Option<fn(u64)>> = const { Cell::new(None) };
}

/// Calls `record` after each turn of this worker, with its duration in nanoseconds.
pub fn on_turn(record: fn(u64)) {
    ON_TURN.set(Some(record));
}

/// Records a poll's work in bytes.
#[inline]
pub(super) fn note_poll(bytes: u64) {
    if bytes > LONGEST_POLL.get() {
        LONGEST_POLL.set(bytes);
        tell(|peaks| peaks.note_poll(bytes));
    }
}

/// Records the duration of a turn. Returns when it ended.
#[inline]
pub(super) fn note_turn(began_ns: u64) -> u64 {
    let ended_ns = clock::monotonic_ns();
    let turn_ns = ended_ns.saturating_sub(began_ns);
    if let Some(record) = ON_TURN.get() {
        record(turn_ns);
    }
    if turn_ns > LONGEST_TURN_NS.get() {
        LONGEST_TURN_NS.set(turn_ns);
        tell(|peaks| peaks.note_turn(turn_ns / 1000));
    }
    ended_ns
}

#[cold]
fn tell(note: impl FnOnce(&LoopPeaks)) {
    OWN.with(|own| note(own.get_or_init(LoopPeaks::of_worker)));
}

/// The most work of a task of this worker in one poll, in bytes.
#[cfg(any(test, feature = "testing"))]
pub fn longest_poll() -> u64 {
    LONGEST_POLL.get()
}
