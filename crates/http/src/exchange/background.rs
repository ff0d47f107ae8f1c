//! Work that continues without its client: storing a reply, sending a copy of a request.
//!
//! It belongs to the worker and holds its generation. A worker that leaves waits for it, and
//! `worker_shutdown_timeout` cuts it off, as with connections.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use net::ConnectionTracker;
use session::WorkerSlot;

use crate::site::Generation;

/// The most background tasks of one worker and generation. Each may have a connection to a backend,
/// and one client can start many, so the limit keeps descriptors for other requests.
pub(crate) const BACKGROUND_TASKS_MAX: usize = 512;

/// One worker's background tasks of one generation.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    /// Where the worker counts all its tasks.
    tracker: RefCell<Rc<ConnectionTracker>>,
    running: Cell<usize>,
}

/// A task was refused: [`BACKGROUND_TASKS_MAX`] are running.
#[derive(Debug)]
pub(crate) struct TooManyTasks;

impl WorkerSlot<Generation> for BackgroundTasks {}

impl BackgroundTasks {
    /// The generation's tasks belong to the worker that has this tracker. A configuration without
    /// `http {}` has no tasks.
    pub(crate) fn track_with(generation: &Rc<Generation>, tracker: &Rc<ConnectionTracker>) {
        if let Some(tasks) = generation.worker.find::<Self>() {
            tasks.tracker.replace(tracker.clone());
        }
    }

    /// Starts a task. Without an event loop, at the end of a process, it is dropped.
    pub(crate) fn start(
        generation: &Rc<Generation>,
        task: impl Future<Output = ()> + 'static,
    ) -> Result<(), TooManyTasks> {
        let tasks = Self::of(generation);
        if tasks.running.get() >= BACKGROUND_TASKS_MAX {
            return Err(TooManyTasks);
        }
        tasks.running.set(tasks.running.get() + 1);
        let running = RunningTask(generation.clone());
        let tracker = tasks.tracker.borrow().clone();
        tracker.spawn(generation.number, async move {
            let _running = running;
            task.await;
        });
        Ok(())
    }

    /// Waits until no task is left.
    #[cfg(test)]
    pub(crate) async fn ended(generation: &Rc<Generation>) {
        let tracker = Self::of(generation).tracker.borrow().clone();
        tracker.empty().await;
    }

    fn of(generation: &Rc<Generation>) -> &Self {
        generation.worker.of()
    }
}

/// Counts a task until it is dropped.
struct RunningTask(Rc<Generation>);

impl Drop for RunningTask {
    fn drop(&mut self) {
        let running = &BackgroundTasks::of(&self.0).running;
        running.set(running.get() - 1);
    }
}
