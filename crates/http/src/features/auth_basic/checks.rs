//! Checks of passwords on threads, a few at a time, in the order of requests.
//!
//! The limit keeps many wrong passwords from taking all processors, all memory (yescrypt takes 16
//! MB for each) and all threads that read files. It counts checks, not clients: a client that
//! disconnects leaves the queue, but does not end a check that has begun.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The most checks of a worker at a time.
pub(super) const CHECKS_MAX: usize = 4;

/// Runs the work on a thread when it is its turn. Work that panics returns false.
pub(super) async fn run(work: impl FnOnce() -> bool + Send + 'static) -> bool {
    let turn = Turn::join();
    poll_fn(|cx| turn.event.poll(cx)).await;
    let guard = DoneGuard(Rc::default());
    let outcome = guard.0.clone();
    net::spawn(async move {
        let (_turn, guard) = (turn, guard);
        guard.0.accepted.set(net::offload(work).await);
    });
    poll_fn(|cx| outcome.done.poll(cx)).await;
    outcome.accepted.get()
}

#[derive(Default)]
struct Outcome {
    accepted: Cell<bool>,
    done: CheckEvent,
}

/// Reports the end of a check when it is dropped.
struct DoneGuard(Rc<Outcome>);

impl Drop for DoneGuard {
    fn drop(&mut self) {
        self.0.done.happen();
    }
}

/// An event that happens once, and the task that waits for it.
#[derive(Default)]
struct CheckEvent {
    happened: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl CheckEvent {
    fn happen(&self) {
        self.happened.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.happened.get() {
            return Poll::Ready(());
        }
        self.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

thread_local! {
    static QUEUE: RefCell<CheckQueue> = RefCell::default();
}

#[derive(Default)]
struct CheckQueue {
    /// The number of active turns.
    running: usize,
    waiting: VecDeque<Rc<CheckEvent>>,
}

/// A turn, or a place in the queue for one. Dropping it ends either.
struct Turn {
    event: Rc<CheckEvent>,
}

impl Turn {
    fn join() -> Self {
        let event = Rc::<CheckEvent>::default();
        QUEUE.with_borrow_mut(|queue| {
            if queue.running < CHECKS_MAX {
                queue.running += 1;
                event.happen();
            } else {
                queue.waiting.push_back(event.clone());
            }
        });
        Self { event }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let leave = |queue: &RefCell<CheckQueue>| {
            let mut queue = queue.borrow_mut();
            if !self.event.happened.get() {
                queue.waiting.retain(|other| !Rc::ptr_eq(other, &self.event));
                return;
            }
            match queue.waiting.pop_front() {
                Some(next) => next.happen(),
                None => queue.running -= 1,
            }
        };
        // At the end of the thread, the queue may be dropped first.
        let _ = QUEUE.try_with(leave);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_limited_number_of_checks_runs_at_a_time() {
        let most = Arc::new(AtomicUsize::new(0));
        let now = Arc::new(AtomicUsize::new(0));
        let (done, all) = net::mailbox();
        let counted = most.clone();
        net::run(async move {
            for _ in 0..3 * CHECKS_MAX {
                let (most, now, done) = (counted.clone(), now.clone(), done.clone());
                net::spawn(async move {
                    let accepted = run(move || {
                        let others = now.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(others, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                        true
                    });
                    done.send(accepted.await);
                });
            }
            let mut all = all;
            for _ in 0..3 * CHECKS_MAX {
                assert_eq!(all.next().await, Some(true));
            }
        })
        .unwrap();
        assert_eq!(most.load(Ordering::SeqCst), CHECKS_MAX);
    }

    #[test]
    fn a_disconnect_leaves_the_queue_but_does_not_end_a_check() {
        net::run(async {
            let (finish, wait) = mpsc::channel::<()>();
            let wait = Arc::new(std::sync::Mutex::new(wait));
            let mut begun: Vec<_> = (0..CHECKS_MAX)
                .map(|_| {
                    let wait = wait.clone();
                    Box::pin(run(move || wait.lock().unwrap().recv().is_ok()))
                })
                .collect();
            for check in &mut begun {
                assert!(poll_once(check.as_mut()).await.is_pending());
            }
            let mut next = Box::pin(run(|| true));
            let mut gone = Box::pin(run(|| true));
            assert!(poll_once(gone.as_mut()).await.is_pending());
            assert!(poll_once(next.as_mut()).await.is_pending());
            drop((gone, begun));
            assert!(poll_once(next.as_mut()).await.is_pending());
            finish.send(()).unwrap();
            assert!(next.await);
            drop(finish);
        })
        .unwrap();
    }

    #[test]
    fn a_check_that_panics_fails() {
        let accepted = net::run(async { run(|| panic!("a test of panics")).await });
        assert!(!accepted.unwrap());
    }

    async fn poll_once<F: Future + ?Sized>(mut future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
    }
}
