//! Counters: every worker counts on its own cache lines; a reader adds them up.
//!
//! A counter has one writer, so counting is a load, an addition and a store, without a locked
//! instruction and without a cache line shared by two workers. A value that goes up and down
//! consists of two counters that only go up, because a connection can end on another worker than it
//! began on.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A counter with one writing thread and any number of readers.
#[derive(Default)]
struct Counter(AtomicU64);

impl Counter {
    /// Adds one. For the worker's own thread only.
    #[inline]
    fn add(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one worker. The alignment keeps them off other workers' cache lines, and off the
/// adjacent line that the processor prefetches.
#[derive(Default)]
#[repr(align(128))]
pub struct WorkerCounters {
    // Accepted connections.
    accepts: Counter,
    // Connections that were served: all but those refused by a limit.
    handled: Counter,
    // Closed connections.
    closed: Counter,
    // Requests that began to be read.
    requests: Counter,
    // Requests whose head was read completely.
    heads: Counter,
    // Finished requests with a complete head.
    answered: Counter,
    // Requests that ended before their head was complete.
    broken: Counter,
    // How often connections began to wait for a request.
    idle: Counter,
    // How often such a wait ended.
    busy: Counter,
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

static WORKERS: Mutex<Vec<&WorkerCounters>> = Mutex::new(Vec::new());

impl WorkerCounters {
    /// The counters of a new worker, which are never freed.
    pub fn of_worker() -> &'static Self {
        let counts: &'static Self = Box::leak(Box::default());
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
        counts
    }

    /// Counts an accepted connection, which is open until the result is dropped.
    pub fn accept(&'static self) -> OpenConnection {
        self.accepts.add();
        self.handled.add();
        OpenConnection(self)
    }

    /// Counts a connection that is refused by a limit.
    pub fn refuse(&'static self) {
        self.accepts.add();
        self.closed.add();
    }

    /// Counts a connection that waits for a request until the result is dropped.
    pub fn wait(&'static self) -> WaitingConnection {
        self.idle.add();
        WaitingConnection(self)
    }

    /// Counts a request that begins to be read, and ends when the result is dropped.
    pub fn request(&'static self) -> InRequest {
        self.requests.add();
        InRequest { counts: self, has_head: false }
    }
}

pub struct OpenConnection(&'static WorkerCounters);

/// A connection that waits for a request.
pub struct WaitingConnection(&'static WorkerCounters);

pub struct InRequest {
    counts: &'static WorkerCounters,
    has_head: bool,
}

impl InRequest {
    /// Counts the complete head: from now on the request is being answered.
    pub fn head_complete(&mut self) {
        self.has_head = true;
        self.counts.heads.add();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.closed.add();
    }
}

impl Drop for WaitingConnection {
    fn drop(&mut self) {
        self.0.busy.add();
    }
}

impl Drop for InRequest {
    fn drop(&mut self) {
        let over = if self.has_head { &self.counts.answered } else { &self.counts.broken };
        over.add();
    }
}

impl CounterTotals {
    /// The sums of all workers, which continue to count meanwhile; a difference is never negative.
    pub fn now() -> Self {
        let workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |counter: fn(&WorkerCounters) -> &Counter| -> u64 {
            workers.iter().map(|counts| counter(counts).read()).sum()
        };
        // Ends are read before beginnings.
        let (closed, answered, broken) =
            (sum(|c| &c.closed), sum(|c| &c.answered), sum(|c| &c.broken));
        let (busy, heads) = (sum(|c| &c.busy), sum(|c| &c.heads));
        let (idle, requests) = (sum(|c| &c.idle), sum(|c| &c.requests));
        let (handled, accepts) = (sum(|c| &c.handled), sum(|c| &c.accepts));
        Self {
            accepts,
            handled,
            requests,
            active: accepts.saturating_sub(closed),
            reading: requests.saturating_sub(heads + broken),
            writing: heads.saturating_sub(answered),
            waiting: idle.saturating_sub(busy),
        }
    }
}

/// Numbers that a thread reserves at once.
const BLOCK: u64 = 64;

/// The number of a new connection, to a client or a server: unique in the process. Threads reserve
/// blocks, so that they access the shared counter once per [`BLOCK`] connections.
pub fn connection_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let (mut next, mut end) = OWN.get();
    if next == end {
        next = NEXT.fetch_add(BLOCK, Ordering::Relaxed);
        end = next + BLOCK;
    }
    OWN.set((next + 1, end));
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_all_workers() {
        let (one, other) = (WorkerCounters::of_worker(), WorkerCounters::of_worker());
        let _open = one.accept();
        let mut request = one.request();
        request.head_complete();
        drop(other.accept());
        let waiting = other.wait();
        let now = CounterTotals::now();
        assert_eq!((now.accepts, now.handled, now.active, now.requests), (2, 2, 1, 1));
        assert_eq!((now.reading, now.writing, now.waiting), (0, 1, 1));
        drop((request, waiting));
        let broken = one.request();
        let now = CounterTotals::now();
        assert_eq!((now.reading, now.writing, now.waiting), (1, 0, 0));
        drop(broken);
        assert_eq!((CounterTotals::now().reading, CounterTotals::now().requests), (0, 2));
    }

    #[test]
    fn connection_numbers_are_unique_across_threads() {
        let take = || (0..1000).map(|_| connection_number()).collect::<Vec<_>>();
        let others = std::thread::spawn(take);
        let mut all = take();
        all.extend(others.join().unwrap());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
    }
}
