//! Wakes from other threads.
//!
//! A worker has an inbox, with an event descriptor that is signalled by the first wake put in. Any
//! thread finds it by the worker's number. A loom test tries the possible orders.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::event::EventfdFlags;

use super::task_id::{TaskId, WORKERS_MAX, WorkerNumber};
use crate::sync::{Mutex, lock};

/// The inboxes of all workers, indexed by their numbers.
static INBOXES: RwLock<Vec<Option<Arc<WakeInbox>>>> = RwLock::new(Vec::new());

/// Gives a new worker its number and its inbox.
pub(super) fn open() -> io::Result<(WorkerNumber, Arc<WakeInbox>)> {
    let inbox = Arc::new(WakeInbox::new(EventBell::new()?));
    let mut inboxes = INBOXES.write().unwrap_or_else(PoisonError::into_inner);
    let number = inboxes.iter().position(Option::is_none).unwrap_or(inboxes.len());
    if number == WORKERS_MAX {
        return Err(io::Error::other("too many workers in one process"));
    }
    if number == inboxes.len() {
        inboxes.push(None);
    }
    inboxes[number] = Some(inbox.clone());
    Ok((number as WorkerNumber, inbox))
}

/// Removes the inbox of a worker that has ended.
pub(super) fn close(worker: Option<WorkerNumber>) {
    let mut inboxes = INBOXES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = worker {
        inboxes[usize::from(number)] = None;
    }
}

/// Wakes a task of another thread, unless its worker has ended.
pub(super) fn wake(task: TaskId) {
    let inboxes = INBOXES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(inbox)) = inboxes.get(usize::from(task.worker())) {
        inbox.put(task);
    }
}

/// Tasks to be woken by their worker.
pub(super) struct WakeInbox<B = EventBell> {
    tasks: Mutex<Vec<TaskId>>,
    bell: B,
}

/// Notifies a worker of its inbox.
pub(super) trait Bell {
    fn ring(&self);
}

impl<B: Bell> WakeInbox<B> {
    fn new(bell: B) -> Self {
        Self { tasks: Mutex::new(Vec::new()), bell }
    }

    fn put(&self, task: TaskId) {
        let mut tasks = lock(&self.tasks);
        tasks.push(task);
        let is_first = tasks.len() == 1;
        drop(tasks);
        // Later wakes need no ring: the worker takes them together with the first one.
        if is_first {
            self.bell.ring();
        }
    }

    /// Takes all tasks. Called after each ring.
    pub(super) fn take(&self) -> Vec<TaskId> {
        mem::take(&mut *lock(&self.tasks))
    }
}

/// An event descriptor in the worker's epoll set. Each write to it is an event, so it is never
/// read.
pub(super) struct EventBell(OwnedFd);

impl EventBell {
    fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags)?))
    }
}

impl Bell for EventBell {
    fn ring(&self) {
        // It fails when the counter overflows, after some hundred thousand years.
        let rung = rustix::io::write(&self.0, &1u64.to_ne_bytes());
        debug_assert!(rung.is_ok(), "{rung:?}");
    }
}

impl AsFd for WakeInbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
    }
}

#[cfg(all(weir_loom, test))]
mod loom {
    use ::loom::sync::Notify;
    use ::loom::thread;

    use super::*;

    /// Like an edge-triggered descriptor: several rings before the wait count as one.
    struct NotifyBell(Notify);

    impl Bell for NotifyBell {
        fn ring(&self) {
            self.0.notify();
        }
    }

    #[test]
    fn no_wake_is_lost() {
        const THREADS: u32 = 2;
        ::loom::model(|| {
            let inbox = ::loom::sync::Arc::new(WakeInbox::new(NotifyBell(Notify::new())));
            let threads = [0; THREADS as usize].map(|worker| {
                let inbox = inbox.clone();
                thread::spawn(move || inbox.put(TaskId::new(worker, 0, 1)))
            });
            let mut taken = 0;
            while taken < THREADS as usize {
                inbox.bell.0.wait();
                taken += inbox.take().len();
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
