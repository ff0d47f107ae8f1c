//! What this worker's event loop has kept others waiting for, at most: told to [`observe`].
//!
//! Work of a task is counted as it is done; the time of a turn costs one look at the clock.

use std::cell::{Cell, OnceCell};

use observe::LoopPeaks;

use crate::clock;

thread_local! {
    static OWN: OnceCell<&'static LoopPeaks> = const { OnceCell::new() };
    static LONGEST_TURN_NS: Cell<u64> = const { Cell::new(0) };
    static LONGEST_POLL: Cell<u64> = const { Cell::new(0) };
}

/// A task has done so much in one go.
#[inline]
pub(super) fn note_poll(bytes: u64) {
    if bytes > LONGEST_POLL.get() {
        LONGEST_POLL.set(bytes);
        tell(|peaks| peaks.note_poll(bytes));
    }
}

/// The turn that began when the clock was refreshed last is over.
#[inline]
pub(super) fn note_turn(began_ns: u64) {
    let turn_ns = clock::monotonic_ns().saturating_sub(began_ns);
    if turn_ns > LONGEST_TURN_NS.get() {
        LONGEST_TURN_NS.set(turn_ns);
        tell(|peaks| peaks.note_turn(turn_ns / 1000));
    }
}

#[cold]
fn tell(note: impl FnOnce(&LoopPeaks)) {
    OWN.with(|own| note(own.get_or_init(LoopPeaks::of_worker)));
}

/// The most that a task of this worker has done in one go, in bytes.
#[cfg(any(test, feature = "testing"))]
pub fn longest_poll() -> u64 {
    LONGEST_POLL.get()
}
