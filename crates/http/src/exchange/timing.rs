//! Where the time of a request goes: for each cause, how long the exchange waited.
//!
//! Only requests of servers with `slow_log`, `$request_timing` or `$server_timing` have a
//! [`RequestTiming`], from their first wait on. The code that is about to wait names the cause; the
//! driver, which polls the exchange, reads the clock when it starts and when it waits:
//!
//! ```text
//! runs --pause--> waits for something --resume--> runs
//! ```
//!
//! So phases never overlap, and their sum is the request's time. Subrequests share the timing of
//! their main request.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use net::clock;

use super::{PhaseTimes, TimedPhase};

/// The phases of a request so far.
pub(crate) struct RequestTiming {
    times: RefCell<PhaseTimes>,
    /// What it waits for, or would wait for next.
    waits_for: Cell<TimedPhase>,
    /// Whether one phase covers all that happens now.
    is_held: Cell<bool>,
    state: Cell<TimingState>,
    /// When the state began, by the worker's clock.
    since_ms: Cell<u64>,
}

#[derive(Clone, Copy)]
enum TimingState {
    /// It runs; the value of [`net::deferrals`] when it began to.
    Runs { deferrals: u64 },
    /// It waits; `for_turn`: only for its turn, as it has let others go first.
    Waits { for_turn: bool },
}

impl RequestTiming {
    /// The timing of a request from now on; `times` are those before.
    pub(super) fn begin(times: PhaseTimes) -> Self {
        Self {
            times: RefCell::new(times),
            waits_for: Cell::new(TimedPhase::Other),
            is_held: Cell::new(false),
            state: Cell::new(TimingState::Runs { deferrals: net::deferrals() }),
            since_ms: Cell::new(clock::now_ms()),
        }
    }

    /// Names what the next wait is for.
    pub(crate) fn waits_for(&self, phase: TimedPhase) {
        if !self.is_held.get() {
            self.waits_for.set(phase);
        }
    }

    pub(super) fn next_wait(&self) -> TimedPhase {
        self.waits_for.get()
    }

    /// Has one phase cover everything until [`release`](Self::release). False if another one does.
    pub(super) fn hold(&self, phase: TimedPhase) -> bool {
        self.waits_for(phase);
        !self.is_held.replace(true)
    }

    pub(super) fn release(&self) {
        self.is_held.set(false);
        self.waits_for(TimedPhase::Other);
    }

    /// Polls a part of the exchange, and counts the wait before and the work in it.
    #[inline]
    pub(crate) fn around<T>(timing: &Option<Rc<Self>>, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        if let Some(timing) = timing {
            timing.resume();
        }
        let polled = poll();
        if let (Poll::Pending, Some(timing)) = (&polled, timing) {
            timing.pause();
        }
        polled
    }

    /// The same for all of a future's polls.
    pub(crate) async fn along<T>(timing: Option<Rc<Self>>, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|cx| Self::around(&timing, || future.as_mut().poll(cx))).await
    }

    fn resume(&self) {
        if let TimingState::Waits { for_turn } = self.state.get() {
            self.end_wait(for_turn);
        }
        self.state.set(TimingState::Runs { deferrals: net::deferrals() });
    }

    fn pause(&self) {
        let TimingState::Runs { deferrals } = self.state.get() else { return };
        self.spend_until_now(TimedPhase::Run);
        // While nothing can be sent, only what reads ahead lets others go first.
        let can_send = !matches!(self.next_wait(), TimedPhase::Send | TimedPhase::LimitRate);
        let for_turn = can_send && deferrals != net::deferrals();
        self.state.set(TimingState::Waits { for_turn });
    }

    /// Counts the wait, and how long its end went unnoticed.
    fn end_wait(&self, for_turn: bool) {
        let since_ms = self.since_ms.get();
        let arrived_ms = if for_turn { since_ms } else { net::arrived_ms().max(since_ms) };
        self.spend_until(arrived_ms, self.waits_for.get());
        self.spend_until_now(TimedPhase::Loop);
    }

    fn spend_until_now(&self, phase: TimedPhase) {
        clock::refresh();
        self.spend_until(clock::now_ms(), phase);
    }

    fn spend_until(&self, end_ms: u64, phase: TimedPhase) {
        let since_ms = self.since_ms.replace(end_ms);
        self.times.borrow_mut().add(phase, end_ms.saturating_sub(since_ms));
    }

    /// The times up to now. Whatever it waited for is over: it runs, or has been cancelled.
    pub(super) fn until_now(&self) -> PhaseTimes {
        match self.state.get() {
            TimingState::Runs { .. } => self.spend_until_now(TimedPhase::Run),
            TimingState::Waits { .. } => self.resume(),
        }
        *self.times.borrow()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// The phases after a wait of so many milliseconds, which `begin` prepares.
    fn after_wait(ms: u64, begin: impl Fn(&RequestTiming)) -> Vec<(&'static str, u32)> {
        net::run(async {
            net::testing::stop_clock();
            let timing = RequestTiming::begin(PhaseTimes::default());
            timing.resume();
            begin(&timing);
            timing.pause();
            net::testing::advance(ms).await;
            timing.until_now().iter().collect()
        })
        .unwrap()
    }

    #[test]
    fn a_wait_counts_for_what_was_named_last() {
        let named = after_wait(5, |timing| {
            timing.waits_for(TimedPhase::Send);
            timing.waits_for(TimedPhase::BackendBody);
        });
        assert_eq!(named, [("backend_body", 5)]);
    }

    #[test]
    fn letting_others_go_first_is_waiting_for_a_turn() {
        for (named, counted) in [(TimedPhase::BackendBody, "loop"), (TimedPhase::Send, "send")] {
            let deferred = after_wait(5, |timing| {
                timing.waits_for(named);
                net::defer(Waker::noop());
            });
            assert_eq!(deferred, [(counted, 5)]);
        }
    }
}
