//! One server's slots, and a slot in use.
//!
//! Taking and freeing are one compare-and-swap while nobody waits; all else goes to the line.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::line::WaitQueue;
use super::tally::{Counters, LimitStats};
use super::word::{self, SlotWord};

/// How many requests a server may have in progress, and how many it has.
///
/// One for each server address of a [`WaitQueue`], shared by all threads and by every group that
/// names the queue's zone. It outlives configurations.
pub struct ServerSlots<G> {
    pub(super) word: SlotWord,
    pub(super) line: Arc<WaitQueue<G>>,
    /// Unique in the line.
    pub(super) id: u64,
    name: Box<[u8]>,
    pub(super) counters: Counters,
}

/// A slot in use; dropping it frees it, or gives it to the oldest waiter.
pub struct ServerSlot<G> {
    slots: Arc<ServerSlots<G>>,
    released: bool,
}

impl<G> ServerSlots<G> {
    pub(super) fn new(line: &Arc<WaitQueue<G>>, id: u64, name: &[u8], max: u32) -> Self {
        let word = SlotWord::new(max, line.row(name, max));
        let (line, name) = (Arc::clone(line), name.into());
        Self { word, line, id, name, counters: Counters::default() }
    }

    /// Takes a slot, unless all are in use or somebody waits for one.
    #[inline]
    pub fn try_take(self: &Arc<Self>) -> Option<ServerSlot<G>> {
        let slot = self.word.take().then(|| ServerSlot::new(Arc::clone(self)))?;
        match self.word.confirm() {
            true => Some(slot),
            false => self.try_again(slot),
        }
    }

    /// Another process tried at the same moment. The slot is released like any other, since a
    /// request may have begun to wait for it.
    #[cold]
    fn try_again(self: &Arc<Self>, slot: ServerSlot<G>) -> Option<ServerSlot<G>> {
        drop(slot);
        for () in word::tries() {
            let slot = self.word.take().then(|| ServerSlot::new(Arc::clone(self)))?;
            if self.word.confirm() {
                return Some(slot);
            }
        }
        None
    }

    /// The line that requests join to wait for this server.
    pub fn line(&self) -> &Arc<WaitQueue<G>> {
        &self.line
    }

    /// The server's address, as it was given to [`WaitQueue::slots`].
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The maximum in this process's configuration. While several processes serve, the maximum of
    /// the one that started last holds.
    pub fn max(&self) -> u32 {
        self.word.load().max()
    }

    /// Requests of this process in progress. Above the maximum only after that was lowered.
    pub fn in_progress(&self) -> u32 {
        self.word.load().used()
    }

    /// Whether [`ServerSlots::try_take`] would fail now: no slot is free, or a request waits.
    pub fn is_full(&self) -> bool {
        let now = self.word.load();
        now.waiting() > 0 || !now.has_free() || !self.word.has_room()
    }

    /// Requests that wait and may use this server, those included that may use others as well.
    pub fn waiting(&self) -> u32 {
        self.word.load().waiting()
    }

    /// Whether a gift of this giver is welcome to whoever is next: one who wants it, and has not
    /// the same at hand. Only a hint, since another may be next a moment later.
    pub fn awaits_gift(&self, giver: u64) -> bool {
        self.waiting() > 0 && self.line.awaits_gift(self, giver)
    }

    /// The counters.
    pub fn tally(&self) -> LimitStats {
        self.counters.read(self.in_progress().into())
    }

    /// Another maximum, at most [`super::SLOTS_MAX`]. Raised, it lets waiters in; lowered, nobody
    /// is let in until enough slots have come back.
    pub fn set_max(self: &Arc<Self>, max: u32) {
        self.line.set_max(self, max);
    }

    /// The server cannot be used by this group for now: its waiters no longer wait for it. Those
    /// that wait for no other are told.
    pub fn withdraw(self: &Arc<Self>, group: u64) {
        self.line.withdraw(self, group);
    }

    /// The server can be used by this group (again): its waiters that have not tried it may get it,
    /// too, each in its place.
    pub fn admit(self: &Arc<Self>, group: u64) {
        self.line.admit(self, group);
    }

    fn release_with(self: &Arc<Self>, gift: G) -> Option<G> {
        if self.word.free_unless_awaited() {
            return Some(gift);
        }
        self.line.pass_on(self, Some(gift))
    }
}

impl<G> Drop for ServerSlots<G> {
    fn drop(&mut self) {
        self.line.forget(&self.name);
    }
}

impl<G> ServerSlot<G> {
    pub(super) fn new(slots: Arc<ServerSlots<G>>) -> Self {
        Self { slots, released: false }
    }

    /// Whose slot this is.
    pub fn slots(&self) -> &Arc<ServerSlots<G>> {
        &self.slots
    }

    /// Frees the slot, or gives it and the gift to the oldest waiter; a gift that nobody waits for
    /// comes back.
    pub fn release_with(mut self, gift: G) -> Option<G> {
        self.released = true;
        self.slots.release_with(gift)
    }
}

impl<G> Drop for ServerSlot<G> {
    fn drop(&mut self) {
        if !self.released && !self.slots.word.free_unless_awaited() {
            self.slots.line.pass_on(&self.slots, None);
        }
    }
}

impl<G> Debug for ServerSlots<G> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {:?}", self.name.escape_ascii(), self.word)
    }
}

impl<G> Debug for ServerSlot<G> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "a slot of {:?}", self.slots)
    }
}
