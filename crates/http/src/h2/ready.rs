//! The queue of ready streams. Each stream has its own waker, and a turn runs only ready streams.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The streams of a connection that are ready, and the connection's own waker.
#[derive(Default)]
pub(super) struct ReadyStreams {
    queue: Mutex<Vec<u32>>,
    task: Mutex<Option<Waker>>,
    /// A turn is running and will look at the queue before it ends.
    in_turn: AtomicBool,
}

/// The waker of a slot, for one stream after another.
pub(super) struct StreamWaker {
    ready: Arc<ReadyStreams>,
    slot: u32,
    is_queued: AtomicBool,
}

impl ReadyStreams {
    pub(super) fn begin_turn(&self, task: &Waker) {
        self.in_turn.store(true, Ordering::Relaxed);
        let mut own = lock(&self.task);
        if !own.as_ref().is_some_and(|own| own.will_wake(task)) {
            *own = Some(task.clone());
        }
    }

    /// Ends a turn. Returns whether no stream is ready.
    pub(super) fn end_turn(&self) -> bool {
        self.in_turn.store(false, Ordering::SeqCst);
        lock(&self.queue).is_empty()
    }

    /// Moves the streams that are ready to an empty list.
    pub(super) fn take(&self, into: &mut Vec<u32>) {
        std::mem::swap(&mut *lock(&self.queue), into);
    }
}

impl StreamWaker {
    pub(super) fn new(ready: &Arc<ReadyStreams>, slot: u32) -> Arc<Self> {
        Arc::new(Self { ready: ready.clone(), slot, is_queued: AtomicBool::new(false) })
    }

    /// The stream is about to run.
    pub(super) fn leave_queue(&self) {
        self.is_queued.store(false, Ordering::SeqCst);
    }

    /// Makes the stream run in this turn or the next.
    pub(super) fn make_ready(&self) {
        if self.is_queued.swap(true, Ordering::SeqCst) {
            return;
        }
        lock(&self.ready.queue).push(self.slot);
        if !self.ready.in_turn.load(Ordering::SeqCst)
            && let Some(task) = &*lock(&self.ready.task)
        {
            task.wake_by_ref();
        }
    }
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.make_ready();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.make_ready();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
