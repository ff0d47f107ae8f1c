//! The state that the clients of a thread share.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use net::accept::Transport;
use net::tls::{ClientTransport, TlsDetails};

use super::background::Background;
use super::pace::Pace;
use super::plan::RunPlan;
use super::scripted::Scripted;
use crate::results::{BackgroundStats, RunStats};
use crate::script::ScriptError;

pub(super) struct ThreadShared {
    pub(super) plan: Arc<RunPlan>,
    pub(super) pace: Pace,
    pub(super) background: Background,
    /// The counts since the last reported second.
    pub(super) tally: RefCell<RunStats>,
    pub(super) script: Option<Scripted>,
    /// TLS; sessions are resumed within a thread.
    pub(super) transport: Option<Arc<dyn Transport>>,
    started: Cell<u64>,
    pub(super) last_reply: Cell<Option<Instant>>,
    /// Open loop: the end of starts.
    pub(super) starts_over: Cell<Option<Instant>>,
    /// The number of reported seconds.
    pub(super) reported: Cell<usize>,
    /// The highest CPU time of a second.
    pub(super) on_cpu_most: Cell<Duration>,
    halted: RefCell<Halted>,
    pub(super) window: Cell<Option<(u64, Duration)>>,
}

/// Whether the script has ended the thread, and why.
#[derive(Default)]
struct Halted {
    why: Option<Result<(), String>>,
    watcher: Option<Waker>,
}

impl ThreadShared {
    /// That of thread `number`.
    pub(super) fn new(plan: Arc<RunPlan>, number: u64) -> io::Result<Self> {
        let script = plan.script.as_ref().map(Scripted::load).transpose();
        Ok(Self {
            script: script.map_err(io::Error::other)?,
            // Threads share the requests of a run: by number in an open loop, otherwise in parts.
            started: Cell::new(match (plan.rate, plan.requests) {
                (None, Some(total)) => plan.first(number, total),
                _ => number,
            }),
            transport: plan.tls.as_ref().map(own_transport),
            plan,
            pace: Pace::default(),
            background: Background::default(),
            tally: RefCell::default(),
            last_reply: Cell::new(None),
            starts_over: Cell::new(None),
            reported: Cell::new(0),
            on_cpu_most: Cell::default(),
            halted: RefCell::default(),
            window: Cell::new(None),
        })
    }

    /// The number of the next request in the mix.
    pub(super) fn next_number(&self) -> u64 {
        let n = self.started.get();
        self.started.set(n + if self.plan.rate.is_some() { self.plan.threads } else { 1 });
        n
    }

    /// Counts a reply to a request whose intended start was `begun`.
    pub(super) fn replied(&self, status: u16, begun: Instant, now: Instant) {
        let latency = now.saturating_duration_since(begun);
        self.last_reply.set(Some(now));
        let mut tally = self.tally.borrow_mut();
        tally.replies += 1;
        // Echoes have no status.
        if status > 0 {
            tally.statuses.count(status);
        }
        note(&mut tally.latency_us, latency.as_micros() as u64);
    }

    /// Counts what happens beside the measured load.
    pub(super) fn count_beside(&self, change: impl FnOnce(&mut BackgroundStats)) {
        change(&mut self.tally.borrow_mut().background);
    }

    /// Ends the thread, because its script has stopped it or failed.
    pub(super) fn halt(&self, why: Result<(), ScriptError>) {
        let mut halted = self.halted.borrow_mut();
        halted.why.get_or_insert(why.map_err(|error| error.to_string()));
        if let Some(watcher) = halted.watcher.take() {
            watcher.wake();
        }
    }

    /// Why the script has ended the thread, if it has.
    pub(super) fn take_halted(&self) -> Option<Result<(), String>> {
        self.halted.borrow_mut().why.take()
    }

    pub(super) fn poll_halted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut halted = self.halted.borrow_mut();
        if halted.why.is_some() {
            return Poll::Ready(());
        }
        halted.watcher = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Counts a connection with TLS.
    pub(super) fn secured(&self, details: &TlsDetails, begun: Instant) {
        let mut tally = self.tally.borrow_mut();
        note(&mut tally.tls.connect_us, begun.elapsed().as_micros() as u64);
        tally.tls.count(crate::tls::agreed(details), details.is_resumed);
    }

    /// Records the lateness of a request although a client was free.
    pub(super) fn is_late(&self, late: Duration) {
        note(&mut self.tally.borrow_mut().lateness_us, late.as_micros() as u64);
    }
}

/// The largest value: a day in microseconds, and more than any rate.
const VALUE_MAX: u64 = 24 * 3600 * 1_000_000;

pub(super) fn note(histogram: &mut Histogram<u64>, value: u64) {
    // Cannot fail: the histogram grows, and the value is within its limit.
    let _ = histogram.record(value.min(VALUE_MAX));
}

fn own_transport(of_all: &ClientTransport) -> Arc<dyn Transport> {
    let ClientTransport { tls, name } = of_all;
    Arc::new(ClientTransport { tls: tls.with_own_sessions(), name: name.clone() })
}
