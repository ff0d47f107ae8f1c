//! Work that may wait for a disk, done by threads beside the worker, so that the worker goes on.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use crate::{Mailbox, mailbox};

/// Threads that work beside one worker; further work queues for them. nginx's pool has as many.
const THREADS_MAX: usize = 32;
/// How long a thread that has nothing to do stays.
const IDLE_MAX: Duration = Duration::from_secs(10);

thread_local! {
    /// The threads beside this worker, from the first work on.
    static THREADS: RefCell<Option<Arc<DiskThreads>>> = const { RefCell::new(None) };
}

/// Work under way. The work is finished even if this is dropped.
pub struct Offloaded<T>(Mailbox<thread::Result<T>>);

/// Has a thread do the work.
pub fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Offloaded<T> {
    let (sender, mailbox) = mailbox();
    let threads = THREADS.with_borrow_mut(|threads| threads.get_or_insert_default().clone());
    threads.take_on(Box::new(move || {
        sender.send(panic::catch_unwind(AssertUnwindSafe(work)));
    }));
    Offloaded(mailbox)
}

impl<T> Future for Offloaded<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(self.0.poll_next(cx)) {
            Some(Ok(done)) => Poll::Ready(done),
            Some(Err(panic)) => panic::resume_unwind(panic),
            // The worker is ending, and nobody is asked again.
            None => Poll::Pending,
        }
    }
}

/// Waits until the work that this worker's threads have begun is done; the rest is dropped.
pub(crate) fn close() {
    if let Some(threads) = THREADS.take() {
        threads.close();
    }
}

type DiskJob = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct DiskThreads {
    state: Mutex<DiskWork>,
    changed: Condvar,
}

#[derive(Default)]
struct DiskWork {
    waiting: VecDeque<DiskJob>,
    threads: usize,
    /// Those of them that wait for work, with what is waiting for them.
    idle: usize,
    is_closed: bool,
}

impl DiskThreads {
    fn take_on(self: Arc<Self>, work: DiskJob) {
        let mut state = self.lock();
        state.waiting.push_back(work);
        if state.waiting.len() <= state.idle || state.threads == THREADS_MAX {
            self.changed.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let threads = self.clone();
        let started = thread::Builder::new().name("disk".to_owned()).spawn(move || threads.work());
        if started.is_err() {
            // The system has no more threads: if there is none at all, this one does the work.
            let mut state = self.lock();
            state.threads -= 1;
            let own = if state.threads == 0 { state.waiting.pop_front() } else { None };
            drop(state);
            own.into_iter().for_each(|work| work());
        }
    }

    /// What a thread does until it has been idle for long.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            while let Some(work) = state.waiting.pop_front() {
                drop(state);
                work();
                state = self.lock();
            }
            state.idle += 1;
            let has_none = |state: &mut DiskWork| state.waiting.is_empty() && !state.is_closed;
            let waited = self.changed.wait_timeout_while(state, IDLE_MAX, has_none);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            if state.waiting.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        self.changed.notify_all();
    }

    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let dropped = std::mem::take(&mut state.waiting);
        self.changed.notify_all();
        let is_at_work = |state: &mut DiskWork| state.threads > 0;
        drop(self.changed.wait_while(state, is_at_work));
        drop(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, DiskWork> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_thread_does_the_work() {
        let here = thread::current().id();
        let there = crate::run(async { offload(|| thread::current().id()).await });
        assert_ne!(there.unwrap(), here);
    }

    #[test]
    fn work_that_waits_does_not_keep_other_work_waiting() {
        crate::run(async {
            let all = Arc::new(Barrier::new(THREADS_MAX));
            let works: Vec<_> = (0..THREADS_MAX)
                .map(|_| {
                    let all = all.clone();
                    offload(move || all.wait().is_leader())
                })
                .collect();
            let mut leaders = 0;
            for work in works {
                leaders += usize::from(work.await);
            }
            assert_eq!(leaders, 1);
        })
        .unwrap();
    }

    #[test]
    fn begun_work_is_finished_when_the_worker_ends() {
        let done = Arc::new(AtomicUsize::new(0));
        let counted = done.clone();
        let (begun, mut mailbox) = mailbox();
        crate::run(async move {
            let begins = begun.clone();
            drop(offload(move || {
                begins.send(());
                thread::yield_now();
                counted.fetch_add(1, Ordering::SeqCst);
            }));
            mailbox.next().await;
        })
        .unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_panic_goes_to_whoever_waits() {
        let waited = panic::catch_unwind(|| crate::run(async { offload(|| panic!("work")).await }));
        assert!(waited.is_err());
        let again = crate::run(async { offload(|| 1).await });
        assert_eq!(again.unwrap(), 1);
    }
}
