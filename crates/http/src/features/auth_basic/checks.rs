//! Checks of passwords beside the worker, a few at a time, first come first served.
//!
//! The bound keeps a crowd of wrong passwords from taking every processor, all of the memory
//! (yescrypt takes 16 MB for each) and every thread that reads files. It counts work, not clients:
//! one who goes away gives up a place in the queue, but not a check that has begun.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Checks of one worker that are under way at a time.
pub(super) const CHECKS_MAX: usize = 4;

/// Has a thread do the work when it is its turn. Work that panics accepts nobody.
pub(super) async fn run(work: impl FnOnce() -> bool + Send + 'static) -> bool {
    let turn = Turn::join();
    poll_fn(|cx| turn.event.poll(cx)).await;
    let teller = Teller(Rc::default());
    let accepted = teller.0.clone();
    net::spawn(async move {
        let (_turn, teller) = (turn, teller);
        teller.0.accepted.set(net::offload(work).await);
    });
    poll_fn(|cx| accepted.told.poll(cx)).await;
    accepted.accepted.get()
}

/// What a check comes to.
#[derive(Default)]
struct Outcome {
    accepted: Cell<bool>,
    told: CheckEvent,
}

/// Tells when it goes.
struct Teller(Rc<Outcome>);

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.told.happen();
    }
}

/// Something that happens once, and one who waits for it.
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
    /// Turns that have come and are not over.
    running: usize,
    waiting: VecDeque<Rc<CheckEvent>>,
}

/// A turn, or a place in the queue for one. It is over when this goes.
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
        // At the thread's end the queue may be gone first.
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
    fn a_few_at_a_time() {
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
    fn who_goes_away_leaves_the_queue_but_not_the_work() {
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
    fn work_that_panics_accepts_nobody() {
        let accepted = net::run(async { run(|| panic!("a test of panics")).await });
        assert!(!accepted.unwrap());
    }

    async fn poll_once<F: Future + ?Sized>(mut future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
    }
}
