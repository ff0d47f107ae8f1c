//! A clock that tests control.
//!
//! A worker's timers and sleeps use its clock, so a stopped clock stops them all. Sockets are not
//! affected: bytes arrive at once. Before time passes, a worker does everything that does not need
//! time, so the order of events does not depend on real time.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::{Alarm, clock, timer, yield_now};

/// How often the sockets are checked before a worker counts as idle.
const LOOKS: usize = 16;
/// Pause between two checks of a worker that waits for another thread.
const PAUSE: Duration = Duration::from_millis(1);

/// From now on, only [`advance`] moves this worker's clock.
pub fn stop_clock() {
    clock::stop(true);
}

/// From now on, this worker's clock runs by itself again.
pub fn start_clock() {
    clock::stop(false);
    timer::wake_driver();
}

/// Lets the worker do everything that does not need time.
pub async fn settle() {
    for _ in 0..LOOKS {
        // Continues after the other tasks have run and the sockets have been checked.
        yield_now().await;
    }
}

/// Lets time pass, from one deadline to the next; the worker does the work due at each.
pub async fn advance(delay_ms: u64) {
    assert!(clock::is_stopped(), "the clock goes by itself");
    let end_ms = clock::now_ms() + delay_ms;
    settle().await;
    while clock::now_ms() < end_ms {
        let next_ms = timer::next_deadline_ms().map_or(end_ms, |due_ms| due_ms.min(end_ms));
        clock::step(next_ms - clock::now_ms());
        timer::wake_due();
        settle().await;
    }
}

/// Runs a worker without outside input: whenever it waits, time passes. Returns the result and the
/// duration in milliseconds. No time passes between two such runs on a thread.
pub fn simulate<T>(main: impl Future<Output = T>) -> io::Result<(T, u64)> {
    crate::run(async {
        clock::stop(true);
        let began_ms = clock::now_ms();
        let mut main = pin!(main);
        let done = loop {
            let polled = poll_fn(|cx| Poll::Ready(main.as_mut().poll(cx))).await;
            if let Poll::Ready(done) = polled {
                break done;
            }
            settle().await;
            match timer::next_deadline_ms() {
                Some(due_ms) => {
                    clock::step(due_ms - clock::now_ms());
                    timer::wake_due();
                }
                // A thread beside the worker must do something first.
                None => pause().await,
            }
        };
        (done, clock::now_ms() - began_ms)
    })
}

/// Waits by the real clock.
async fn pause() {
    let mut alarm = Alarm::new().expect("a descriptor");
    alarm.wait_until(Instant::now() + PAUSE).await;
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::{sleep, spawn};

    #[test]
    fn deadlines_are_met_in_order_and_only_when_time_passes() {
        crate::run(async {
            stop_clock();
            let came = Rc::new(RefCell::new(Vec::new()));
            for delay_ms in [30, 10, 50_000] {
                let came = came.clone();
                let start_ms = clock::now_ms();
                spawn(async move {
                    for _ in 0..2 {
                        sleep(Duration::from_millis(delay_ms)).await;
                        came.borrow_mut().push(clock::now_ms() - start_ms);
                    }
                });
            }
            settle().await;
            assert_eq!(*came.borrow(), []);
            advance(29).await;
            assert_eq!(*came.borrow(), [10, 20]);
            advance(1).await;
            assert_eq!(*came.borrow(), [10, 20, 30]);
            advance(100_000).await;
            assert_eq!(*came.borrow(), [10, 20, 30, 60, 50_000, 100_000]);
        })
        .unwrap();
    }

    #[test]
    fn a_simulation_takes_no_time() {
        let (done, took_ms) = simulate(async {
            sleep(Duration::from_secs(1_000)).await;
            "done"
        })
        .unwrap();
        assert_eq!((done, took_ms), ("done", 1_000_000));
    }
}
