//! One lookup in progress, and its waiters.

use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wire::dns::Rcode;

use super::cache::Fact;

pub(super) type LookupOutcome = Result<Rc<Fact>, Rcode>;

#[derive(Default)]
pub(super) struct Flight {
    outcome: OnceCell<LookupOutcome>,
    wakers: RefCell<Vec<Option<Waker>>>,
    /// Unused positions among the wakers.
    free: RefCell<Vec<usize>>,
    waiting: Cell<usize>,
}

impl Flight {
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Wakes all waiters with the outcome; the first outcome counts.
    pub(super) fn land(&self, outcome: LookupOutcome) {
        if self.outcome.set(outcome).is_ok() {
            self.wakers.take().into_iter().flatten().for_each(Waker::wake);
        }
    }

    fn place(&self) -> usize {
        self.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut wakers = self.wakers.borrow_mut();
            wakers.push(None);
            wakers.len() - 1
        })
    }

    pub(super) fn wait(self: Rc<Self>) -> LookupWaiter {
        self.waiting.set(self.waiting.get() + 1);
        LookupWaiter { flight: self, place: None }
    }
}

pub(super) struct LookupWaiter {
    flight: Rc<Flight>,
    /// The position among the wakers.
    place: Option<usize>,
}

impl Future for LookupWaiter {
    type Output = LookupOutcome;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LookupOutcome> {
        if let Some(outcome) = self.flight.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        let place = self.place.unwrap_or_else(|| self.flight.place());
        self.place = Some(place);
        self.flight.wakers.borrow_mut()[place] = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for LookupWaiter {
    fn drop(&mut self) {
        self.flight.waiting.set(self.flight.waiting.get() - 1);
        if let Some(place) = self.place
            && let Some(waker) = self.flight.wakers.borrow_mut().get_mut(place)
        {
            *waker = None;
            self.flight.free.borrow_mut().push(place);
        }
    }
}
