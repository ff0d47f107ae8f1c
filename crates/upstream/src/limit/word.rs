//! A server's state in one atomic word: slots in use, requests waiting, and the maximum.
//!
//! One word, so that "free, and nobody waits" and taking the slot are one step. It knows nothing of
//! who waits; that is the line's, under its mutex.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::sync::AtomicU64;

/// Width of each of the three numbers.
const BITS: u32 = 21;
const MASK: u64 = (1 << BITS) - 1;

const USED: u64 = 1;
const WAITING: u64 = 1 << BITS;
const MAX_SHIFT: u32 = 2 * BITS;

/// The largest maximum: as good as no limit. It bounds those who wait, too.
pub const SLOTS_MAX: u32 = MASK as u32;

/// The word. What is said to be for the line is done only by who holds the line's mutex.
pub(super) struct Word(AtomicU64);

/// What the word was at one moment.
#[derive(Clone, Copy)]
pub(super) struct State(u64);

impl Word {
    pub(super) fn new(max: u32) -> Self {
        Self(AtomicU64::new(u64::from(max.min(SLOTS_MAX)) << MAX_SHIFT))
    }

    pub(super) fn load(&self) -> State {
        State(self.0.load(Acquire))
    }

    /// Takes a slot, unless all are in use or somebody waits for one.
    pub(super) fn take(&self) -> bool {
        self.change(|was| (was.waiting() == 0 && was.has_free()).then_some(was.0 + USED))
    }

    /// Frees a slot, unless somebody waits for it.
    pub(super) fn free_unless_awaited(&self) -> bool {
        self.change(|was| (was.waiting() == 0).then(|| was.0 - USED))
    }

    /// For the line: frees a slot.
    pub(super) fn free(&self) {
        self.0.fetch_sub(USED, AcqRel);
    }

    /// For the line: one more waits. From here on nobody takes or frees without the line.
    pub(super) fn enter(&self) {
        self.0.fetch_add(WAITING, AcqRel);
    }

    /// For the line: one fewer waits.
    pub(super) fn leave(&self) {
        self.0.fetch_sub(WAITING, AcqRel);
    }

    /// For the line: gives a free slot to one who waits.
    pub(super) fn grant(&self) {
        self.0.fetch_sub(WAITING - USED, AcqRel);
    }

    /// For the line: another maximum.
    pub(super) fn set_max(&self, max: u32) {
        let max = u64::from(max.min(SLOTS_MAX)) << MAX_SHIFT;
        self.change(|was| Some(was.0 & !(MASK << MAX_SHIFT) | max));
    }

    fn change(&self, next: impl Fn(State) -> Option<u64>) -> bool {
        self.0.fetch_update(AcqRel, Acquire, |was| next(State(was))).is_ok()
    }
}

impl State {
    pub(super) fn used(self) -> u32 {
        (self.0 & MASK) as u32
    }

    pub(super) fn waiting(self) -> u32 {
        (self.0 >> BITS & MASK) as u32
    }

    pub(super) fn max(self) -> u32 {
        (self.0 >> MAX_SHIFT) as u32
    }

    pub(super) fn has_free(self) -> bool {
        self.used() < self.max()
    }
}
