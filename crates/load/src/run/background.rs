//! What a thread's connections beside the measured load share: idle ones, and clients that read
//! slowly.
//!
//! Their requests are not part of the run's figures. They are opened before the first request, a
//! few at a time, because a server's queue of new connections is short.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use super::plan::BackgroundPlan;
use crate::results::BackgroundStats;

/// The most connections of a thread to open at the same time.
const OPENING_MAX: usize = 64;
/// The failures in a row before the run after which a thread opens no more.
const FAILURES_MAX: usize = 100;

/// The state that a thread's connections in the background share.
#[derive(Default)]
pub(super) struct Background {
    opening: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
    failures: Cell<usize>,
    /// The number of open idle connections.
    idle: Cell<u64>,
    /// Whether a run or a turn is in progress; slow clients rest otherwise.
    is_measured: Cell<bool>,
    resting: RefCell<Vec<Waker>>,
}

/// The right to open a connection, which its drop passes on.
pub(super) struct OpeningSlot<'b>(&'b Background);

impl Background {
    /// Adds what is known at the end of a run or a turn.
    pub(super) fn tell(
        &self,
        plan: &BackgroundPlan,
        share: impl Fn(u64) -> u64,
    ) -> BackgroundStats {
        let mut stats = BackgroundStats::default();
        stats.idle.connections = share(plan.idle);
        stats.idle.open = self.idle.get();
        stats.slow.connections = share(plan.slow);
        stats
    }

    /// Begins or ends a run or a turn.
    pub(super) fn set_measured(&self, is_measured: bool) {
        self.is_measured.set(is_measured);
        if is_measured {
            self.resting.take().into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn poll_measured(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_measured.get() {
            return Poll::Ready(());
        }
        self.resting.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_slot(&self, cx: &mut Context<'_>) -> Poll<OpeningSlot<'_>> {
        if self.opening.get() < OPENING_MAX {
            self.opening.set(self.opening.get() + 1);
            return Poll::Ready(OpeningSlot(self));
        }
        self.waiting.borrow_mut().push_back(cx.waker().clone());
        Poll::Pending
    }

    /// Counts an idle connection that was opened or could not be.
    pub(super) fn note_opened(&self, is_open: bool) {
        self.idle.set(self.idle.get() + u64::from(is_open));
        self.failures.set(if is_open { 0 } else { self.failures.get() + 1 });
    }

    pub(super) fn note_closed(&self) {
        self.idle.set(self.idle.get() - 1);
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.failures.get() >= FAILURES_MAX
    }
}

impl Drop for OpeningSlot<'_> {
    fn drop(&mut self) {
        self.0.opening.set(self.0.opening.get() - 1);
        let next = self.0.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_it_is_dropped() {
        let background = Background::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut slots: Vec<_> = (0..OPENING_MAX).map(|_| background.poll_slot(&mut cx)).collect();
        assert!(slots.iter().all(Poll::is_ready));
        assert!(background.poll_slot(&mut cx).is_pending());
        assert_eq!(background.waiting.borrow().len(), 1);
        slots.pop();
        assert!(background.waiting.borrow().is_empty());
        assert!(background.poll_slot(&mut cx).is_ready());
    }

    #[test]
    fn slow_clients_rest_between_turns() {
        let background = Background::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(background.poll_measured(&mut cx).is_pending());
        background.set_measured(true);
        assert!(background.poll_measured(&mut cx).is_ready());
        background.set_measured(false);
        assert!(background.poll_measured(&mut cx).is_pending());
    }
}
