//! The streams of a connection, and their futures.
//!
//! A slot serves one stream after another and reuses the memory of future, link and waker.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use wire::http2::{Http2Code, StreamKey};

use super::ready::{ReadyStreams, StreamWaker};
use super::shared::Http2Shared;
use super::stream_link::StreamLink;

/// The cost of running a stream, counted as bytes read.
const COST_OF_RUN: usize = 2048;

/// Slots with a higher index are freed when their stream ends.
const SLOTS_KEPT_MAX: usize = 32;

/// The streams of a connection by slot. `F` is the future of a stream.
pub(super) struct Http2Streams<F> {
    slots: Vec<Option<StreamSlot<F>>>,
    ready: Arc<ReadyStreams>,
    /// The streams of the current round that have not run; empty between rounds, except where the
    /// task's share ended one.
    round: Vec<u32>,
    open: usize,
}

struct StreamSlot<F> {
    /// The generation that the stream began under.
    generation: u64,
    link: Rc<StreamLink>,
    future: Pin<Box<Option<F>>>,
    waker: Waker,
}

impl<F: Future<Output = ()>> Http2Streams<F> {
    pub(super) fn new(ready: Arc<ReadyStreams>) -> Self {
        Self { slots: Vec::new(), ready, round: Vec::new(), open: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.open
    }

    /// Starts a stream. Its future is polled while the endpoint still has the fields of its head.
    pub(super) fn start(
        &mut self,
        shared: &Rc<Http2Shared>,
        key: StreamKey,
        (generation, end_stream): (u64, bool),
        run: impl FnOnce(Rc<StreamLink>) -> F,
    ) {
        let at = key.slot as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        let ready = &self.ready;
        let slot = self.slots[at].get_or_insert_with(|| {
            let waker = StreamWaker::new(ready, key.slot);
            let link = Rc::new(StreamLink::new(shared.clone(), key, waker.clone()));
            StreamSlot { generation, link, future: Box::pin(None), waker: waker.into() }
        });
        // A subrequest of the last stream may still hold its link.
        if Rc::get_mut(&mut slot.link).is_none() {
            let waker = slot.link.waker.clone();
            slot.link = Rc::new(StreamLink::new(shared.clone(), key, waker));
        }
        slot.generation = generation;
        slot.link.renew(key, end_stream);
        slot.future.set(Some(run(slot.link.clone())));
        self.open += 1;
        self.run(key.slot);
    }

    /// Runs the ready streams, as far as the task's share goes, but at least one. Returns whether
    /// there were any.
    pub(super) fn run_ready(&mut self) -> bool {
        let mut round = std::mem::take(&mut self.round);
        if round.is_empty() {
            self.ready.take(&mut round);
        }
        let mut count = 0;
        for &slot in &round {
            if let Some(Some(slot)) = self.slots.get(slot as usize) {
                slot.link.waker.leave_queue();
            }
            self.run(slot);
            count += 1;
            if !net::has_share() {
                break;
            }
        }
        round.drain(..count);
        self.round = round;
        count > 0
    }

    /// Whether streams have waited since the last round, which the task's share ended.
    pub(super) fn has_left_out(&self) -> bool {
        !self.round.is_empty()
    }

    fn run(&mut self, at: u32) {
        let Some(Some(slot)) = self.slots.get_mut(at as usize) else { return };
        net::spend(COST_OF_RUN);
        let mut cx = Context::from_waker(&slot.waker);
        let Some(future) = slot.future.as_mut().as_pin_mut() else { return };
        if future.poll(&mut cx).is_ready() {
            self.end(at as usize);
        }
    }

    /// Ends the streams that began under earlier generations. An unfinished one is reset.
    pub(super) fn cut_before(&mut self, generation: u64) {
        for at in 0..self.slots.len() {
            let Some(Some(slot)) = self.slots.get(at) else { continue };
            if slot.future.is_none() || slot.generation >= generation {
                continue;
            }
            let link = slot.link.clone();
            self.end(at);
            link.release(Http2Code::INTERNAL_ERROR);
        }
    }

    fn end(&mut self, at: usize) {
        let Some(Some(slot)) = self.slots.get_mut(at) else { return };
        slot.future.set(None);
        slot.link.drop_input();
        self.open -= 1;
        if at >= SLOTS_KEPT_MAX {
            self.slots[at] = None;
        }
    }

    /// The link of an active stream.
    pub(super) fn link(&self, key: StreamKey) -> Option<&Rc<StreamLink>> {
        let slot = self.slots.get(key.slot as usize)?.as_ref()?;
        (slot.future.is_some() && slot.link.key.get() == key).then_some(&slot.link)
    }

    /// The links of all active streams.
    pub(super) fn links(&self) -> impl Iterator<Item = &Rc<StreamLink>> {
        let open = self.slots.iter().flatten().filter(|slot| slot.future.is_some());
        open.map(|slot| &slot.link)
    }

    /// Frees the slots. Requires that no stream is active.
    pub(super) fn shrink(&mut self) {
        self.slots.clear();
        self.slots.shrink_to_fit();
        self.round = Vec::new();
    }
}
