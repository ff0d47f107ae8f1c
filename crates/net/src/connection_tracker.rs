//! Tracks a worker's connections so they can be woken on reload or cut off at shutdown.
//!
//! A connection that waits for its client notices no other change. When a server shuts down, or
//! loses an address, every task is woken once and checks for itself; old connections can be cut.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::{slots, spawn_if_running};

/// The tasks of a worker's connections.
#[derive(Default)]
pub struct ConnectionTracker {
    wakers: RefCell<Wakers>,
    /// Connections of a lower age end at once.
    cut_before: Cell<u64>,
    age: Cell<u64>,
    emptied: Cell<Option<Waker>>,
}

#[derive(Default)]
struct Wakers {
    slots: Vec<Option<Waker>>,
    free: Vec<u32>,
}

impl ConnectionTracker {
    /// Starts a task. `age` is a number that grows, such as a generation's. Outside of an event
    /// loop the task is dropped.
    pub fn spawn(self: &Rc<Self>, age: u64, task: impl Future<Output = ()> + 'static) {
        let index = self.wakers.borrow_mut().add();
        spawn_if_running(TrackedTask { tracker: self.clone(), index, age, task });
    }

    /// Sets the age of the running connection. Its task calls this when it begins newer work.
    #[inline]
    pub fn set_age(&self, age: u64) {
        self.age.set(age);
    }

    /// Wakes every connection's task to check for changes.
    pub fn wake_all(&self) {
        self.wakers.borrow().slots.iter().flatten().for_each(Waker::wake_by_ref);
    }

    /// Ends the connections with an age below `age`.
    pub fn cut_before(&self, age: u64) {
        self.cut_before.set(age);
        self.wake_all();
    }

    /// The lowest age that may continue.
    pub fn least_age(&self) -> u64 {
        self.cut_before.get()
    }

    /// The number of connections.
    pub fn len(&self) -> usize {
        let wakers = self.wakers.borrow();
        wakers.slots.len() - wakers.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until no connection is left.
    pub async fn empty(&self) {
        std::future::poll_fn(|cx| {
            if self.is_empty() {
                return Poll::Ready(());
            }
            self.emptied.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

impl Wakers {
    fn add(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        })
    }
}

/// A connection's task, tracked until it is done or dropped.
struct TrackedTask<F> {
    tracker: Rc<ConnectionTracker>,
    index: u32,
    age: u64,
    task: F,
}

impl<F: Future<Output = ()>> Future for TrackedTask<F> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `task` is pinned with `self`: it is polled and dropped in place, never moved out;
        // no other field needs pinning. (An `async` block would hold the task twice.)
        let this = unsafe { self.get_unchecked_mut() };
        if this.age < this.tracker.cut_before.get() {
            return Poll::Ready(());
        }
        {
            // A task's waker never changes, so this is done once.
            let mut wakers = this.tracker.wakers.borrow_mut();
            let slot = &mut wakers.slots[this.index as usize];
            if slot.is_none() {
                *slot = Some(cx.waker().clone());
            }
        }
        this.tracker.age.set(this.age);
        // SAFETY: as above.
        let polled = unsafe { Pin::new_unchecked(&mut this.task) }.poll(cx);
        this.age = this.tracker.age.get();
        polled
    }
}

impl<F> Drop for TrackedTask<F> {
    fn drop(&mut self) {
        let wakers = &mut *self.tracker.wakers.borrow_mut();
        wakers.slots[self.index as usize] = None;
        wakers.free.push(self.index);
        if wakers.free.len() < wakers.slots.len() {
            return;
        }
        slots::shrink(&mut wakers.slots, &mut wakers.free, |_| true);
        self.tracker.emptied.take().into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_are_woken_and_cut_by_age() {
        crate::run(async {
            let tracker = Rc::new(ConnectionTracker::default());
            let polls = Rc::new(Cell::new(0));
            for age in 1..=2 {
                let polls = polls.clone();
                tracker.spawn(
                    age,
                    std::future::poll_fn(move |_| {
                        polls.set(polls.get() + 1);
                        Poll::Pending
                    }),
                );
            }
            let turn = || crate::sleep(Duration::from_millis(1));
            turn().await;
            assert_eq!((tracker.len(), polls.get()), (2, 2));
            tracker.wake_all();
            turn().await;
            assert_eq!(polls.get(), 4);
            tracker.cut_before(2);
            turn().await;
            assert_eq!(tracker.len(), 1);
            tracker.cut_before(3);
            tracker.empty().await;
        })
        .unwrap();
    }

    #[test]
    fn a_connection_has_the_age_of_its_current_work() {
        crate::run(async {
            let tracker = Rc::new(ConnectionTracker::default());
            for age in [2, 5] {
                let own = tracker.clone();
                tracker.spawn(1, async move {
                    own.set_age(age);
                    std::future::pending().await
                });
            }
            let turn = || crate::sleep(Duration::from_millis(1));
            turn().await;
            for (least, left) in [(2, 2), (3, 1), (5, 1), (6, 0)] {
                tracker.cut_before(least);
                turn().await;
                assert_eq!((tracker.len(), tracker.least_age()), (left, least));
            }
        })
        .unwrap();
    }
}
