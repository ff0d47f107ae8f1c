//! A worker: one thread, one runtime, nothing shared.

use std::cell::RefCell;
use std::io;

use crate::timer::WheelDriver;
use crate::{clock, offload};

/// Tasks polled between two looks at the sockets while there is work left over.
const TASKS_PER_TURN: u32 = 256;
/// Events taken from the kernel at once.
const EVENTS_PER_TURN: usize = 512;

thread_local! {
    static TURN_END: RefCell<Vec<Box<dyn FnMut()>>> = const { RefCell::new(Vec::new()) };
}

/// Runs a worker on this thread until `main` is done.
pub fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .event_interval(TASKS_PER_TURN)
        .max_io_events_per_tick(EVENTS_PER_TURN)
        .max_blocking_threads(offload::THREADS_MAX)
        .thread_name("disk")
        .on_thread_park(end_turn)
        .on_thread_unpark(clock::refresh)
        .build_local(Default::default())?;
    let done = runtime.block_on(async {
        spawn(WheelDriver::new()?.run());
        Ok(main.await)
    });
    end_turn();
    done
}

/// Lets every task that is ready run first.
pub async fn yield_now() {
    tokio::task::yield_now().await;
}

/// A task under way. It goes on when this is dropped.
pub struct Task(tokio::task::JoinHandle<()>);

impl Task {
    /// Drops the task where it stands.
    pub fn stop(&self) {
        self.0.abort();
    }

    /// Waits until it is over; whether it came to its end: it neither panicked nor was stopped.
    pub async fn ended(&mut self) -> bool {
        (&mut self.0).await.is_ok()
    }
}

/// Starts a task on this worker.
pub fn spawn(task: impl Future<Output = ()> + 'static) -> Task {
    Task(tokio::task::spawn_local(task))
}

/// The same from where there may be no worker: the task is dropped then.
pub fn spawn_if_running(task: impl Future<Output = ()> + 'static) {
    if tokio::runtime::Handle::try_current().is_ok() {
        spawn(task);
    }
}

/// Calls `hook` each time the worker has done all there is and is about to sleep.
pub fn at_turn_end(hook: impl FnMut() + 'static) {
    TURN_END.with_borrow_mut(|hooks| hooks.push(Box::new(hook)));
}

fn end_turn() {
    TURN_END.with_borrow_mut(|hooks| hooks.iter_mut().for_each(|hook| hook()));
}
