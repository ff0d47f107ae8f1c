//! The counters of the limit. Readable at any time, without a lock.
//!
//! A request that waits for several servers counts at one of them, in whose backlog it is. So the
//! numbers of a queue's servers add up to the queue's.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Numbers of one server, or of a whole queue. Those in the past tense only grow, and
/// `queued` = `granted` + `timed_out` + `abandoned` + `stranded` + those still waiting or about to
/// take their grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitStats {
    /// Requests that have a slot now.
    pub in_progress: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// The most that ever waited at once.
    pub waiting_max: u64,
    /// Requests that had to wait.
    pub queued: u64,
    /// Of these, how many took the slot they waited for. Each counts where it waited.
    pub granted: u64,
    /// Of these, how many gave up when their time was over.
    pub timed_out: u64,
    /// Of these, how many were dropped while they waited.
    pub abandoned: u64,
    /// Of these, how many lost the last server they could wait for.
    pub stranded: u64,
    /// Requests turned away, since the backlog was full.
    pub rejected: u64,
    /// The time waited by those granted or timed out, all together.
    pub waited_ms: u64,
    /// The longest of these times.
    pub waited_ms_max: u64,
}

/// The numbers as they are counted; written under the queue's mutex.
#[derive(Default)]
pub(super) struct Counters {
    waiting: AtomicU64,
    waiting_max: AtomicU64,
    queued: AtomicU64,
    granted: AtomicU64,
    timed_out: AtomicU64,
    abandoned: AtomicU64,
    stranded: AtomicU64,
    rejected: AtomicU64,
    waited_ms: AtomicU64,
    waited_ms_max: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) enum WaitEnd {
    Granted { waited_ms: u64 },
    TimedOut { waited_ms: u64 },
    Abandoned,
    Stranded,
}

impl Counters {
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    pub(super) fn reject(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    pub(super) fn queue(&self) {
        self.queued.fetch_add(1, Relaxed);
        self.enter();
    }

    /// One more waits here.
    pub(super) fn enter(&self) {
        let before = self.waiting.fetch_add(1, Relaxed);
        self.waiting_max.fetch_max(before + 1, Relaxed);
    }

    /// One fewer waits here.
    pub(super) fn leave(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub(super) fn end(&self, how: WaitEnd) {
        let (counter, waited_ms) = match how {
            WaitEnd::Granted { waited_ms } => (&self.granted, waited_ms),
            WaitEnd::TimedOut { waited_ms } => (&self.timed_out, waited_ms),
            WaitEnd::Abandoned => (&self.abandoned, 0),
            WaitEnd::Stranded => (&self.stranded, 0),
        };
        counter.fetch_add(1, Relaxed);
        self.waited_ms.fetch_add(waited_ms, Relaxed);
        self.waited_ms_max.fetch_max(waited_ms, Relaxed);
    }

    pub(super) fn read(&self, in_progress: u64) -> LimitStats {
        LimitStats {
            in_progress,
            waiting: self.waiting.load(Relaxed),
            waiting_max: self.waiting_max.load(Relaxed),
            queued: self.queued.load(Relaxed),
            granted: self.granted.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            abandoned: self.abandoned.load(Relaxed),
            stranded: self.stranded.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            waited_ms: self.waited_ms.load(Relaxed),
            waited_ms_max: self.waited_ms_max.load(Relaxed),
        }
    }
}
