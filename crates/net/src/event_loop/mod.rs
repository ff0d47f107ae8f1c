//! The event loop: one thread that runs tasks, and waits for the kernel when no task is ready.
//!
//! Nothing is shared with other threads, so there are no reference counts or locks: a waker is a
//! number ([`tasks`]), and the readiness of a descriptor is a few bits in a table ([`events`]).
//! Other threads wake a task through the loop's [`inbox`]. Deadlines, signals and messages are
//! handled by tasks.

mod arrivals;
mod events;
mod inbox;
mod peaks;
mod task_id;
mod tasks;

use std::cell::RefCell;
use std::io;
use std::pin::pin;
use std::task::Poll;

use rustix::time::Timespec;

pub use self::arrivals::arrived_ms;
pub(crate) use self::events::{EventWatch, Interest, Watched};
#[cfg(any(test, feature = "testing"))]
pub use self::peaks::longest_poll;
pub use self::peaks::on_turn;
use self::tasks::NextTask;
pub(crate) use self::tasks::many_tasks_ended;
pub use self::tasks::{
    Task, defer, deferrals, has_share, poll_share, spawn, spawn_if_running, spend, task_count,
    yield_now,
};
use crate::clock;

/// Maximum number of tasks polled before the descriptors are checked.
const TASKS_PER_TURN: usize = 256;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

thread_local! {
    static TURN_END: RefCell<Vec<Box<dyn FnMut()>>> = const { RefCell::new(Vec::new()) };
}

/// Runs tasks on this thread until `main` is done. The remaining tasks are dropped.
pub(crate) fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let worker = LoopThread::enter()?;
    let mut main = pin!(main);
    let mut turn_began_ns = clock::monotonic_ns();
    loop {
        for _ in 0..TASKS_PER_TURN {
            match tasks::next() {
                NextTask::Task(index) => tasks::poll(index),
                NextTask::Main => {
                    if let Poll::Ready(done) = tasks::poll_main(main.as_mut()) {
                        end_turn();
                        return Ok(done);
                    }
                }
                NextTask::Deferred(waker) => waker.wake(),
                NextTask::Nothing => break,
            }
        }
        turn_began_ns = worker.look_at_events(turn_began_ns)?;
    }
}

/// Calls `hook` each time all ready tasks have run and the worker is about to sleep.
pub fn at_turn_end(hook: impl FnMut() + 'static) {
    TURN_END.with_borrow_mut(|hooks| hooks.push(Box::new(hook)));
}

/// Frees the memory of former tasks and descriptors.
pub(crate) fn shrink() {
    tasks::shrink();
    events::shrink();
}

fn end_turn() {
    TURN_END.with_borrow_mut(|hooks| hooks.iter_mut().for_each(|hook| hook()));
}

/// A thread while it runs the loop.
struct LoopThread(());

impl LoopThread {
    fn enter() -> io::Result<Self> {
        let (number, inbox) = inbox::open()?;
        // From here on, dropping `worker` undoes the steps.
        let worker = Self(());
        tasks::begin(number);
        events::begin(inbox)?;
        Ok(worker)
    }

    /// Ends a turn: waits for events, unless a task is ready. Returns when the next turn began.
    fn look_at_events(&self, turn_began_ns: u64) -> io::Result<u64> {
        if tasks::all_wait() {
            end_turn();
        }
        let timeout = if tasks::all_wait() { None } else { Some(&AT_ONCE) };
        let ended_ns = peaks::note_turn(turn_began_ns);
        events::take(timeout)?;
        let began_ns = clock::refresh();
        arrivals::note_turn(turn_began_ns, ended_ns, began_ns);
        tasks::begin_turn();
        Ok(began_ns)
    }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        tasks::drop_all();
        events::end();
        inbox::close(tasks::end());
    }
}

#[cfg(all(not(weir_loom), test))]
mod tests;
