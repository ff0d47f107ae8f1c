//! One server in the [table](super::table), and the rule by which a process may use a free slot.
//!
//! **Never more than the maximum.** A process first counts the request in its own word, then adds
//! up the words of all processes. If the sum is above the maximum, it takes the request back. Of
//! several processes that do this at once, the last to count sees all the others, so the maximum
//! holds. It can happen that all of them take theirs back although one slot is free, so they retry.
//! This relies on a single order of all these operations: they are `SeqCst`.
//!
//! **Turns.** If requests wait in several processes, a free slot belongs to the process with the
//! fewest requests in progress; among equals, to the one whose last slot was given the longest ago.
//! The others leave it free until that process takes it at its next
//! [tick](super::SharedTable::tick). So every process gets an equal share, and with a maximum of 1
//! they alternate. No slot is left free for a process that hangs.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::layout;
use super::sync::AtomicU64;
use super::table::SharedTable;
use super::word_state::WordState;

/// A server, as one process sees it in the table.
pub(super) struct TableRow {
    table: Arc<SharedTable>,
    key: u64,
    /// The position of the row.
    first: usize,
    /// The position of this process's word.
    own: usize,
}

/// The key of a server in a queue: the same in all processes.
pub(super) fn key(queue: &[u8], server: &[u8]) -> u64 {
    // FNV-1a. Two of 4096 servers have the same 64 bits in one of 2 * 10^12 configurations.
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = queue.iter().chain(&[0]).chain(server);
    bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)).max(1)
}

impl TableRow {
    /// The row of a server, new with this maximum. `None` if no row is left, which is logged.
    pub(super) fn of(table: &Arc<SharedTable>, key: u64, max: u32) -> Option<Self> {
        let first = table.enter_row(key, max)?;
        let own = first + layout::WORDS + table.own();
        Some(Self { table: Arc::clone(table), key, first, own })
    }

    /// This process's word.
    #[inline]
    pub(super) fn cell(&self) -> &AtomicU64 {
        self.table.word(self.own)
    }

    /// Whether no other process is registered. A process that registers after this call sees every
    /// request that was counted before it.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.table.is_alone()
    }

    /// Whether this process may have one more request.
    pub(super) fn has_room(&self) -> bool {
        self.fits(1) || (self.table.clear_ended(true) && self.fits(1))
    }

    /// Whether this process may keep a request that it has just counted.
    pub(super) fn confirm(&self) -> bool {
        let fits = self.fits(0);
        if fits {
            self.table.clear_ended(false);
            let number = self.table.word(self.first + layout::GIVEN).fetch_add(1, SeqCst) + 1;
            self.last_given(self.table.own()).store(number, SeqCst);
        }
        fits
    }

    /// Requests ticks, because a request of this process waits for the server.
    pub(super) fn need_ticks(&self) {
        self.table.need_ticks();
    }

    /// Whether the maximum holds with `more` requests of this process, and a slot is left for every
    /// process whose turn comes first.
    fn fits(&self, more: u32) -> bool {
        let own = WordState::of(self.cell().load(SeqCst));
        let process = self.table.own();
        // Turns do not depend on the request in question.
        let turn =
            ((own.used() + more).saturating_sub(1), self.last_given(process).load(SeqCst), process);
        let mut newest = (self.table.epoch(process), own.max());
        let mut sum = u64::from(own.used() + more);
        for other in self.table.others() {
            let state =
                WordState::of(self.table.word(self.first + layout::WORDS + other).load(SeqCst));
            if !state.is_present() {
                continue;
            }
            sum += u64::from(state.used());
            newest = newest.max((self.table.epoch(other), state.max()));
            if state.waiting() > 0
                && state.has_free()
                && (state.used(), self.last_given(other).load(SeqCst), other) < turn
                && self.table.is_responsive(other)
            {
                sum += 1;
            }
        }
        sum <= u64::from(newest.1)
    }

    fn last_given(&self, process: usize) -> &AtomicU64 {
        self.table.word(self.first + layout::LAST_GIVEN + process)
    }
}

impl Drop for TableRow {
    fn drop(&mut self) {
        self.table.leave_row(self.key);
    }
}
