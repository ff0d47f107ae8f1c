//! A server's state in one atomic word: slots in use, requests waiting, and the maximum.
//!
//! One word, so that "a slot is free and no request waits" and taking the slot are one step. Which
//! requests wait is in the queue, under its mutex.

use std::fmt::{self, Debug, Formatter};
use std::hint;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

use super::row::TableRow;
use super::sync::AtomicU64;
use super::word_state::{USED, WAITING, WordState};

/// How often to try for a slot. More than once only if other processes try at the same moment.
#[cfg(not(all(weir_loom, test)))]
const TRIES_MAX: u32 = 50;
#[cfg(all(weir_loom, test))]
const TRIES_MAX: u32 = 2;

/// The word. Methods "for the queue" are called only while the queue's mutex is held.
pub(super) struct SlotWord(WordStorage);

enum WordStorage {
    Own(AtomicU64),
    /// In memory that other processes read, which have words of their own.
    Shared(TableRow),
}

impl SlotWord {
    /// A word of this process alone, or that of a row.
    pub(super) fn new(max: u32, row: Option<TableRow>) -> Self {
        let Some(row) = row else {
            return Self(WordStorage::Own(AtomicU64::new(WordState::unused(max).bits())));
        };
        let word = Self(WordStorage::Shared(row));
        word.set_max(max);
        word
    }

    #[inline]
    fn cell(&self) -> &AtomicU64 {
        match &self.0 {
            WordStorage::Own(cell) => cell,
            WordStorage::Shared(row) => row.cell(),
        }
    }

    /// The row, while other processes may use the server, too.
    #[inline]
    fn shared(&self) -> Option<&TableRow> {
        match &self.0 {
            WordStorage::Shared(row) if !row.is_alone() => Some(row),
            _ => None,
        }
    }

    pub(super) fn load(&self) -> WordState {
        WordState::of(self.cell().load(Acquire))
    }

    /// Takes a slot, unless all are in use or a request waits for one. The slot may be used once
    /// [`SlotWord::confirm`] has returned true.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.has_room() && self.change(|was| (was.waiting() == 0 && was.has_free()).then_some(USED))
    }

    /// Whether the slot just taken may be kept. If not, it has to be freed.
    #[inline]
    pub(super) fn confirm(&self) -> bool {
        self.shared().is_none_or(TableRow::confirm)
    }

    /// Whether other processes leave a slot for this one.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.shared().is_none_or(TableRow::has_room)
    }

    /// Frees a slot, unless a request waits for it.
    pub(super) fn free_unless_awaited(&self) -> bool {
        self.change(|was| (was.waiting() == 0).then(|| USED.wrapping_neg()))
    }

    /// For the queue: frees a slot.
    pub(super) fn free(&self) {
        self.cell().fetch_sub(USED, SeqCst);
    }

    /// For the queue: one more request waits. From here on slots are taken and freed only through
    /// the queue.
    pub(super) fn enter(&self) {
        self.cell().fetch_add(WAITING, SeqCst);
    }

    /// For the queue: one request fewer waits.
    pub(super) fn leave(&self) {
        self.cell().fetch_sub(WAITING, SeqCst);
    }

    /// For the queue: takes a free slot for a waiting request.
    pub(super) fn claim(&self) -> bool {
        for () in tries() {
            if !self.has_room() || !self.change(|was| was.has_free().then_some(USED)) {
                break;
            }
            if self.confirm() {
                return true;
            }
            self.free();
        }
        self.await_others();
        false
    }

    /// Requests ticks, because a request waits for a slot that another process may free.
    fn await_others(&self) {
        if let Some(row) = self.shared() {
            row.need_ticks();
        }
    }

    /// For the queue: changes the maximum.
    pub(super) fn set_max(&self, max: u32) {
        let next = |was| Some(WordState::of(was).with_max(max).bits());
        let _ = self.cell().fetch_update(SeqCst, Acquire, next);
    }

    fn change(&self, add: impl Fn(WordState) -> Option<u64>) -> bool {
        let next = |was| add(WordState::of(was)).map(|add| was.wrapping_add(add));
        self.cell().fetch_update(SeqCst, Acquire, next).is_ok()
    }
}

/// Attempts, with growing pauses: processes that try at the same moment may all fail.
pub(super) fn tries() -> impl Iterator<Item = ()> {
    (0..TRIES_MAX).map(|turn| (0..turn).for_each(|_| hint::spin_loop()))
}

impl Debug for SlotWord {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let now = self.load();
        write!(out, "{} of {} in use, {} wait", now.used(), now.max(), now.waiting())?;
        match &self.0 {
            WordStorage::Own(_) => Ok(()),
            WordStorage::Shared(_) => out.write_str(", shared"),
        }
    }
}
