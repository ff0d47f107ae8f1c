//! One server's slots, and a slot in use.
//!
//! Taking and freeing are one compare-and-swap while no request waits; everything else goes through
//! the queue.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::queue::WaitQueue;
use super::stats::{Counters, LimitStats};
use super::word::{self, SlotWord};

/// How many requests a server may have in progress, and how many it has.
///
/// One for each server address of a [`WaitQueue`], shared by all threads and by every group that
/// names the queue's zone. It outlives configurations.
pub struct ServerSlots<H> {
    pub(super) word: SlotWord,
    pub(super) queue: Arc<WaitQueue<H>>,
    /// Unique in the queue.
    pub(super) id: u64,
    name: Box<[u8]>,
    pub(super) counters: Counters,
}

/// A slot in use; dropping it frees it, or gives it to the oldest waiter.
pub struct ServerSlot<H> {
    slots: Arc<ServerSlots<H>>,
    released: bool,
}

impl<H> ServerSlots<H> {
    pub(super) fn new(queue: &Arc<WaitQueue<H>>, id: u64, name: &[u8], max: u32) -> Self {
        let word = SlotWord::new(max, queue.row(name, max));
        let (queue, name) = (Arc::clone(queue), name.into());
        Self { word, queue, id, name, counters: Counters::default() }
    }

    /// Takes a slot, unless all are in use or a request waits for one.
    #[inline]
    pub fn try_take(self: &Arc<Self>) -> Option<ServerSlot<H>> {
        let slot = self.word.take().then(|| ServerSlot::new(Arc::clone(self)))?;
        match self.word.confirm() {
            true => Some(slot),
            false => self.try_again(slot),
        }
    }

    /// Another process tried at the same moment. The slot is released like any other, since a
    /// request may have begun to wait for it.
    #[cold]
    fn try_again(self: &Arc<Self>, slot: ServerSlot<H>) -> Option<ServerSlot<H>> {
        drop(slot);
        for () in word::tries() {
            let slot = self.word.take().then(|| ServerSlot::new(Arc::clone(self)))?;
            if self.word.confirm() {
                return Some(slot);
            }
        }
        None
    }

    /// The queue that requests join to wait for this server.
    pub fn queue(&self) -> &Arc<WaitQueue<H>> {
        &self.queue
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

    /// Whether the next waiting request can use a connection of the worker `from`: it needs one,
    /// and belongs to another worker. Only a hint: another request may be next a moment later.
    pub fn awaits_handoff(&self, from: u64) -> bool {
        self.waiting() > 0 && self.queue.awaits_handoff(self, from)
    }

    pub fn stats(&self) -> LimitStats {
        self.counters.read(self.in_progress().into())
    }

    /// Sets the maximum, at most [`super::SLOTS_MAX`]. A higher one gives slots to waiting requests
    /// at once; after a lower one, no slot is given until enough have come back.
    pub fn set_max(self: &Arc<Self>, max: u32) {
        self.queue.set_max(self, max);
    }

    /// This group cannot use the server for now: its requests no longer wait for it. Those that
    /// wait for no other server end with [`super::WaiterAnswer::NoServer`].
    pub fn withdraw(self: &Arc<Self>, group: u64) {
        self.queue.withdraw(self, group);
    }

    /// This group can use the server (again): its waiting requests that have not tried it may get
    /// it, in their order.
    pub fn admit(self: &Arc<Self>, group: u64) {
        self.queue.admit(self, group);
    }

    fn release_with(self: &Arc<Self>, handoff: H) -> Option<H> {
        if self.word.free_unless_awaited() {
            return Some(handoff);
        }
        self.queue.pass_on(self, Some(handoff))
    }
}

impl<H> Drop for ServerSlots<H> {
    fn drop(&mut self) {
        self.queue.forget(&self.name);
    }
}

impl<H> ServerSlot<H> {
    pub(super) fn new(slots: Arc<ServerSlots<H>>) -> Self {
        Self { slots, released: false }
    }

    pub fn slots(&self) -> &Arc<ServerSlots<H>> {
        &self.slots
    }

    /// Frees the slot, or gives it and the connection to the oldest waiting request. Without one,
    /// the connection is returned.
    pub fn release_with(mut self, handoff: H) -> Option<H> {
        self.released = true;
        self.slots.release_with(handoff)
    }
}

impl<H> Drop for ServerSlot<H> {
    fn drop(&mut self) {
        if !self.released && !self.slots.word.free_unless_awaited() {
            self.slots.queue.pass_on(&self.slots, None);
        }
    }
}

impl<H> Debug for ServerSlots<H> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {:?}", self.name.escape_ascii(), self.word)
    }
}

impl<H> Debug for ServerSlot<H> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "a slot of {:?}", self.slots)
    }
}
