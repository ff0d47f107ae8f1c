//! What is known of a server beyond any one configuration: how many requests it has in progress,
//! its failures, its health.
//!
//! Shared by all workers and by all generations that mention the server. Every field is an atomic
//! of its own: choosing is serialised by the group's mutex. How many requests a server may have in
//! progress is not decided here: see [`crate::limit`].

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::times::ServerTimes;

/// A server's standing.
#[derive(Debug)]
pub(crate) struct ServerState {
    in_progress: AtomicU32,
    fails: AtomicU32,
    /// When it failed last.
    accessed_ms: AtomicU64,
    /// When it failed last, or was given a request after `fail_timeout` without one.
    checked_ms: AtomicU64,
    /// How much of its weight failures have taken; each choice it takes part in gives one back.
    deficit: AtomicU32,
    /// What active checks say.
    healthy: AtomicBool,
    /// When it came back into service; 0: it never was out.
    back_ms: AtomicU64,
    /// How fast it is.
    pub times: ServerTimes,
}

impl Default for ServerState {
    fn default() -> Self {
        Self {
            in_progress: AtomicU32::new(0),
            fails: AtomicU32::new(0),
            accessed_ms: AtomicU64::new(0),
            checked_ms: AtomicU64::new(0),
            deficit: AtomicU32::new(0),
            healthy: AtomicBool::new(true),
            back_ms: AtomicU64::new(0),
            times: ServerTimes::default(),
        }
    }
}

/// When a server is to be left alone for its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureRest {
    /// `max_fails`; 0: any number.
    pub max_fails: u32,
    /// `fail_timeout`
    pub fail_timeout_ms: u64,
}

impl ServerState {
    /// Counts one request more.
    pub fn count(&self) {
        self.in_progress.fetch_add(1, Relaxed);
    }

    /// Counts one request less.
    pub fn free(&self) {
        let before = self.in_progress.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a request that was not counted ends");
    }

    /// Requests in progress.
    pub fn in_progress(&self) -> u32 {
        self.in_progress.load(Relaxed)
    }

    /// Failures that count.
    pub fn fails(&self) -> u32 {
        self.fails.load(Relaxed)
    }

    /// Whether it has failed too often and its time is not over.
    pub fn is_failed(&self, patience: FailureRest, now_ms: u64) -> bool {
        patience.max_fails > 0
            && self.fails() >= patience.max_fails
            && self.unchecked_ms(now_ms) <= patience.fail_timeout_ms
    }

    /// How long ago it failed or was tried.
    pub fn unchecked_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.checked_ms.load(Relaxed))
    }

    /// It has been chosen: if long after it was looked at last, this is a trial.
    pub fn chosen(&self, patience: FailureRest, now_ms: u64) {
        if self.unchecked_ms(now_ms) > patience.fail_timeout_ms {
            self.checked_ms.store(now_ms, Relaxed);
        }
    }

    /// A request failed. True: that was one too many.
    pub fn failed(&self, patience: FailureRest, weight: u32, now_ms: u64) -> bool {
        let fails = self.fails.fetch_add(1, Relaxed).saturating_add(1);
        self.accessed_ms.store(now_ms, Relaxed);
        self.checked_ms.store(now_ms, Relaxed);
        let Some(share) = weight.checked_div(patience.max_fails) else { return false };
        let less = |deficit: u32| Some(deficit.saturating_add(share).min(weight));
        let _ = self.deficit.fetch_update(Relaxed, Relaxed, less);
        fails >= patience.max_fails
    }

    /// A request succeeded; after a trial, that forgives the failures before. True: with that, the
    /// server is back in service.
    pub fn succeeded(&self, patience: FailureRest, now_ms: u64) -> bool {
        if self.accessed_ms.load(Relaxed) >= self.checked_ms.load(Relaxed) {
            return false;
        }
        let fails = self.fails.swap(0, Relaxed);
        let is_back = patience.max_fails > 0 && fails >= patience.max_fails;
        if is_back {
            self.back_ms.store(now_ms, Relaxed);
        }
        is_back
    }

    /// Forgives all failures: a server that is alone is not left alone.
    pub fn forgive(&self) {
        if self.fails() != 0 {
            self.fails.store(0, Relaxed);
        }
    }

    /// What is left of its weight after failures.
    pub fn effective(&self, weight: u32) -> u32 {
        weight.saturating_sub(self.deficit.load(Relaxed))
    }

    /// Gives one back of what failures took.
    pub fn recover(&self) {
        if self.deficit.load(Relaxed) > 0 {
            let more = |deficit: u32| deficit.checked_sub(1);
            let _ = self.deficit.fetch_update(Relaxed, Relaxed, more);
        }
    }

    /// Whether active checks find it well, or nobody checks it.
    pub fn is_healthy(&self) -> bool {
        self.healthy.load(Relaxed)
    }

    /// What an active check found. True: that is a change.
    pub fn set_healthy(&self, healthy: bool, now_ms: u64) -> bool {
        let changed = self.healthy.swap(healthy, Relaxed) != healthy;
        if changed && healthy {
            self.back_ms.store(now_ms, Relaxed);
        }
        changed
    }

    /// How long it has been back in service; `None`: it never was out.
    pub fn back_since_ms(&self, now_ms: u64) -> Option<u64> {
        match self.back_ms.load(Relaxed) {
            0 => None,
            back_ms => Some(now_ms.saturating_sub(back_ms)),
        }
    }
}
