//! Connections that are being opened, on which requests wait to share them.
//!
//! The first request for a server opens a connection; those that arrive meanwhile would open one
//! each. Instead they wait for the first, as many as it will probably have streams for.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::key::PoolKey;

/// Requests that wait for one connection. With the one that opens it, no more than the streams that
/// a server should allow (RFC 9113, section 6.5.2).
const WAITING_MAX: usize = 99;

/// The openings of one group and worker.
#[derive(Default)]
pub(super) struct Openings(Vec<(PoolKey, Rc<OpeningState>)>);

#[derive(Default)]
struct OpeningState {
    /// Whether the connection is shared now, or else has failed.
    end: Cell<Option<bool>>,
    wakers: RefCell<Vec<Waker>>,
}

/// Held by the request that opens a connection until others can share it, or it has failed.
pub struct SharedOpening {
    pub(super) number: u32,
    state: Rc<OpeningState>,
}

/// Waits for the end of an [`SharedOpening`]: whether the connection is shared.
pub struct OpeningWait {
    state: Rc<OpeningState>,
    place: usize,
}

impl Openings {
    pub(super) fn begin(&mut self, number: u32, key: PoolKey) -> SharedOpening {
        let state = Rc::<OpeningState>::default();
        self.0.push((key, state.clone()));
        SharedOpening { number, state }
    }

    /// A place among those that wait for a connection with that key.
    pub(super) fn join(&self, key: &PoolKey) -> Option<OpeningWait> {
        self.0.iter().filter(|(own, _)| own == key).find_map(|(_, state)| {
            let mut wakers = state.wakers.borrow_mut();
            let place = wakers.len();
            if place == WAITING_MAX {
                return None;
            }
            wakers.push(Waker::noop().clone());
            Some(OpeningWait { state: state.clone(), place })
        })
    }

    pub(super) fn end(&mut self, opening: &SharedOpening) {
        self.0.retain(|(_, state)| !Rc::ptr_eq(state, &opening.state));
    }
}

impl SharedOpening {
    /// Ends it after the connection was added to the pool; a mere drop says that it has failed.
    pub fn succeed(self) {
        self.state.end.set(Some(true));
    }

    /// Lets those who wait go on.
    pub(super) fn wake(&self) {
        self.state.end.set(Some(self.state.end.get().is_some()));
        self.state.wakers.take().into_iter().for_each(Waker::wake);
    }
}

impl Future for OpeningWait {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        if let Some(is_shared) = self.state.end.get() {
            return Poll::Ready(is_shared);
        }
        if let Some(waker) = self.state.wakers.borrow_mut().get_mut(self.place) {
            waker.clone_from(cx.waker());
        }
        Poll::Pending
    }
}
