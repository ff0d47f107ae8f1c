//! Wakes from other threads.
//!
//! A worker has an inbox, with an event descriptor that rings when the first wake is put in. Any
//! thread finds it by the worker's number. loom tries the orders in which that can happen.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::event::EventfdFlags;

use super::task_id::{TaskId, WORKERS_MAX, WorkerNumber};
use crate::sync::{Mutex, lock};

/// The inboxes of all workers, each at its number.
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

/// A worker has ended.
pub(super) fn close(worker: Option<WorkerNumber>) {
    let mut inboxes = INBOXES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = worker {
        inboxes[usize::from(number)] = None;
    }
}

/// Wakes a task of another thread, unless its worker is gone.
pub(super) fn wake(task: TaskId) {
    let inboxes = INBOXES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(inbox)) = inboxes.get(usize::from(task.worker())) {
        inbox.put(task);
    }
}

/// Tasks to be woken.
pub(super) struct WakeInbox<B = EventBell> {
    tasks: Mutex<Vec<TaskId>>,
    bell: B,
}

/// What tells a worker of its inbox.
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
        // After those that follow the first one, nobody rings: it is still to be taken with them.
        if is_first {
            self.bell.ring();
        }
    }

    /// What was put in. Called each time the bell has rung.
    pub(super) fn take(&self) -> Vec<TaskId> {
        mem::take(&mut *lock(&self.tasks))
    }
}

/// An event descriptor in the worker's epoll set. Each write to it is an event, so nothing is read.
pub(super) struct EventBell(OwnedFd);

impl EventBell {
    fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags)?))
    }
}

impl Bell for EventBell {
    fn ring(&self) {
        // It fails when its count is at the end, which takes some hundred thousand years.
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

    /// As an edge-triggered descriptor: however often it rings before it is heard, that is once.
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
