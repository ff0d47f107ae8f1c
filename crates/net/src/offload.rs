//! Runs work that may block on a disk on threads beside the worker.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use crate::{Mailbox, mailbox};

/// Maximum number of threads per worker, as in nginx's pool; further work queues.
const THREADS_MAX: usize = 32;
/// How long an idle thread is kept.
const IDLE_MAX: Duration = Duration::from_secs(10);

thread_local! {
    /// This worker's threads, created by the first work.
    static THREADS: RefCell<Option<Arc<DiskThreads>>> = const { RefCell::new(None) };
}

/// Work under way. It is finished even if this is dropped.
pub struct Offloaded<T>(Mailbox<thread::Result<T>>);

/// Runs the work on another thread.
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
            // The worker is ending, and the task is not polled again.
            None => Poll::Pending,
        }
    }
}

/// Waits until the running work of this worker's threads is done; queued work is dropped.
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
    /// Threads that wait for work, including those that are woken for queued work.
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
            // The system has no more threads: without any, this thread does the work.
            let mut state = self.lock();
            state.threads -= 1;
            let own = if state.threads == 0 { state.waiting.pop_front() } else { None };
            drop(state);
            own.into_iter().for_each(|work| work());
        }
    }

    /// Runs work until the thread has been idle for `IDLE_MAX`.
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
    fn work_runs_on_another_thread() {
        let here = thread::current().id();
        let there = crate::run(async { offload(|| thread::current().id()).await });
        assert_ne!(there.unwrap(), here);
    }

    #[test]
    fn blocked_work_does_not_block_other_work() {
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
    fn a_panic_of_the_work_reaches_the_waiting_task() {
        let waited = panic::catch_unwind(|| crate::run(async { offload(|| panic!("work")).await }));
        assert!(waited.is_err());
        let again = crate::run(async { offload(|| 1).await });
        assert_eq!(again.unwrap(), 1);
    }
}
