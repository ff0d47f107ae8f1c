//! What each worker counts: connections, requests, and the turns of its event loop.

use std::cell::Cell;
use std::sync::LazyLock;

use crate::counts;
use crate::fields::{Newest, Reading, Tally, UpDown};
use crate::histogram::Times;
use crate::metric::Metric;
use crate::wanted::are_wanted;

counts! {
    /// The counters of one worker.
    pub struct WorkerCounters of Workers = 11 {
        /// The process, and the worker's number there.
        process: Newest,
        worker: Newest,
        /// Open connections.
        connections: UpDown,
        /// Connections that a limit refused.
        refused: Tally,
        /// Requests, from their first byte on.
        requests: UpDown,
        /// Requests with a complete head that are being answered.
        answering: UpDown,
        /// Connections that wait for a request.
        waiting: UpDown,
        /// From a wake-up of the event loop to the next look at the sockets.
        turns: Times,
        /// The longest of them, in nanoseconds.
        longest_turn: Newest,
        /// Tasks at the end of the last turn, if a page shows them.
        tasks: Reading,
    }
}

impl WorkerCounters<'static> {
    /// The counters of the calling worker.
    pub fn of_worker() -> Self {
        Workers::metric().own()
    }

    /// Counts the turns of the calling worker's event loop from now on.
    pub fn count_turns(number: usize) {
        let own = Self::of_worker();
        own.process().set(u64::from(std::process::id()));
        own.worker().set(number as u64);
        OWN.set(Some(own));
        net::on_turn(|turn_ns| {
            if let Some(own) = OWN.get() {
                own.turns().record(turn_ns);
                own.longest_turn().set(own.longest_turn().get().max(turn_ns));
                if are_wanted() {
                    own.tasks().set(net::task_count() as u64);
                }
            }
        });
    }

    /// Counts an accepted connection, which is open until the result is dropped.
    pub fn accept(self) -> OpenConnection {
        self.connections().rise();
        OpenConnection(self)
    }

    /// Counts a connection that is refused by a limit.
    pub fn refuse(self) {
        self.refused().add(1);
    }

    /// Counts a connection that waits for a request until the result is dropped.
    pub fn wait(self) -> WaitingConnection {
        self.waiting().rise();
        WaitingConnection(self)
    }

    /// Counts a request that begins to be read, and ends when the result is dropped.
    pub fn request(self) -> InRequest {
        self.requests().rise();
        InRequest { counters: self, has_head: false }
    }
}

thread_local! {
    /// The counters of a worker that counts its turns.
    static OWN: Cell<Option<WorkerCounters<'static>>> = const { Cell::new(None) };
}

impl Workers {
    /// What the workers of all processes count.
    pub fn metric() -> &'static Metric<Self> {
        static METRIC: LazyLock<Metric<Workers>> = LazyLock::new(|| Metric::named(b""));
        &METRIC
    }
}

/// A connection, until it is dropped. It may end in another worker than it began in.
pub struct OpenConnection(WorkerCounters<'static>);

/// A connection that waits for a request.
pub struct WaitingConnection(WorkerCounters<'static>);

pub struct InRequest {
    counters: WorkerCounters<'static>,
    has_head: bool,
}

impl InRequest {
    /// Counts the complete head: from now on the request is being answered.
    pub fn head_complete(&mut self) {
        self.has_head = true;
        self.counters.answering().rise();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections().fall();
    }
}

impl Drop for WaitingConnection {
    fn drop(&mut self) {
        self.0.waiting().fall();
    }
}

impl Drop for InRequest {
    fn drop(&mut self) {
        if self.has_head {
            self.counters.answering().fall();
        }
        self.counters.requests().fall();
    }
}

impl Workers {
    /// Begins the count of connections anew, as [`Metric::reset`].
    pub fn reset_connections() {
        let totals = Self::metric().totals();
        let (own, all) = (Self::metric().own(), totals.get());
        own.connections().forget(all.connections().falls());
        own.refused().add(all.refused().get().wrapping_neg());
    }

    /// Begins the count of requests anew, as [`Metric::reset`].
    pub fn reset_requests() {
        let totals = Self::metric().totals();
        Self::metric().own().requests().forget(totals.get().requests().falls());
    }
}

/// The sums of all workers' counts, as `stub_status` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterTotals {
    /// Accepted connections.
    pub accepts: u64,
    /// Served connections.
    pub handled: u64,
    pub requests: u64,
    /// Open connections.
    pub active: u64,
    /// Requests whose head is being read.
    pub reading: u64,
    /// Requests being answered.
    pub writing: u64,
    /// Connections that wait for a request.
    pub waiting: u64,
}

impl CounterTotals {
    pub fn now() -> Self {
        let totals = Workers::metric().totals();
        let all = totals.get();
        let (handled, writing) = (all.connections().total(), all.answering().now());
        Self {
            accepts: handled + all.refused().get(),
            handled,
            requests: all.requests().total(),
            active: all.connections().now(),
            reading: all.requests().now().saturating_sub(writing),
            writing,
            waiting: all.waiting().now(),
        }
    }
}
