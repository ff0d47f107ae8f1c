//! The state of a server, which outlives configurations: requests in progress, failures, health.
//!
//! Shared by all workers and by all generations that name the server. Every field is an atomic of
//! its own; choices are serialised by the group's mutex. How many requests a server may have in
//! progress is decided in [`crate::limit`].

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use metrics::Metric;

use crate::counters::ServerCounts;
use crate::times::ServerTimes;

#[derive(Debug)]
pub(crate) struct ServerState {
    in_progress: AtomicU32,
    fails: AtomicU32,
    /// When it last failed.
    accessed_ms: AtomicU64,
    /// When it last failed, or was tried again after `fail_timeout`.
    checked_ms: AtomicU64,
    /// How much failures have reduced its weight; each choice that considers it gives one back.
    deficit: AtomicU32,
    /// The result of active checks.
    healthy: AtomicBool,
    /// When it came back into service; 0: it was never out of service.
    back_ms: AtomicU64,
    /// Since when it is out of service; 0: it is in service.
    down_ms: AtomicU64,
    pub times: ServerTimes,
    /// The name of its counters.
    name: Box<[u8]>,
    counters: OnceLock<Metric<ServerCounts>>,
}

impl ServerState {
    /// The state of a server that counts under that name.
    pub fn named(name: Box<[u8]>) -> Self {
        Self {
            in_progress: AtomicU32::new(0),
            fails: AtomicU32::new(0),
            accessed_ms: AtomicU64::new(0),
            checked_ms: AtomicU64::new(0),
            deficit: AtomicU32::new(0),
            healthy: AtomicBool::new(true),
            back_ms: AtomicU64::new(0),
            down_ms: AtomicU64::new(0),
            times: ServerTimes::default(),
            name,
            counters: OnceLock::new(),
        }
    }

    /// What it has done.
    pub fn counters(&self) -> &Metric<ServerCounts> {
        self.counters.get_or_init(|| Metric::named(&self.name))
    }

    /// For how long it has been out of service.
    pub fn down_for_ms(&self, now_ms: u64) -> Option<u64> {
        match self.down_ms.load(Relaxed) {
            0 => None,
            down_ms => Some(now_ms.saturating_sub(down_ms)),
        }
    }

    fn goes_down(&self, now_ms: u64) {
        // The first reason counts; 0 means that there is none.
        let _ = self.down_ms.compare_exchange(0, now_ms.max(1), Relaxed, Relaxed);
    }

    fn comes_back(&self, now_ms: u64) {
        self.back_ms.store(now_ms, Relaxed);
        let down_ms = self.down_ms.swap(0, Relaxed);
        if down_ms != 0 && metrics::are_wanted() {
            self.counters().own().downtime_ms().add(now_ms.saturating_sub(down_ms));
        }
    }
}

/// When failures take a server out of use, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailurePolicy {
    /// `max_fails`; 0: any number.
    pub max_fails: u32,
    pub fail_timeout_ms: u64,
}

impl ServerState {
    /// One request more is in progress.
    pub fn count(&self) {
        self.in_progress.fetch_add(1, Relaxed);
    }

    /// One request fewer is in progress.
    pub fn free(&self) {
        let before = self.in_progress.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a request that was not counted ends");
    }

    /// Requests in progress.
    pub fn in_progress(&self) -> u32 {
        self.in_progress.load(Relaxed)
    }

    /// Failures since the last success.
    pub fn fails(&self) -> u32 {
        self.fails.load(Relaxed)
    }

    /// Whether it is out of use after too many failures.
    pub fn is_failed(&self, failure_policy: FailurePolicy, now_ms: u64) -> bool {
        failure_policy.max_fails > 0
            && self.fails() >= failure_policy.max_fails
            && self.unchecked_ms(now_ms) <= failure_policy.fail_timeout_ms
    }

    /// How long ago it failed or was tried.
    pub fn unchecked_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.checked_ms.load(Relaxed))
    }

    /// It has been chosen: after `fail_timeout`, this is a trial.
    pub fn chosen(&self, failure_policy: FailurePolicy, now_ms: u64) {
        if self.unchecked_ms(now_ms) > failure_policy.fail_timeout_ms {
            self.checked_ms.store(now_ms, Relaxed);
        }
    }

    /// A request failed. True: that takes the server out of use.
    pub fn failed(&self, failure_policy: FailurePolicy, weight: u32, now_ms: u64) -> bool {
        let fails = self.fails.fetch_add(1, Relaxed).saturating_add(1);
        if metrics::are_wanted() {
            self.counters().own().fails().add(1);
        }
        self.accessed_ms.store(now_ms, Relaxed);
        self.checked_ms.store(now_ms, Relaxed);
        let Some(share) = weight.checked_div(failure_policy.max_fails) else { return false };
        let less = |deficit: u32| Some(deficit.saturating_add(share).min(weight));
        let _ = self.deficit.fetch_update(Relaxed, Relaxed, less);
        let is_out = fails >= failure_policy.max_fails;
        if is_out {
            self.goes_down(now_ms);
        }
        if fails == failure_policy.max_fails && metrics::are_wanted() {
            self.counters().own().unavailable().add(1);
        }
        is_out
    }

    /// A request succeeded; after a trial, that clears earlier failures. True: the server is back
    /// in service.
    pub fn succeeded(&self, failure_policy: FailurePolicy, now_ms: u64) -> bool {
        if self.accessed_ms.load(Relaxed) >= self.checked_ms.load(Relaxed) {
            return false;
        }
        let fails = self.fails.swap(0, Relaxed);
        let is_back = failure_policy.max_fails > 0 && fails >= failure_policy.max_fails;
        if is_back {
            self.comes_back(now_ms);
        }
        is_back
    }

    /// Clears all failures: the only server of a group stays in use.
    pub fn forgive(&self) {
        if self.fails() != 0 {
            self.fails.store(0, Relaxed);
        }
    }

    /// Its weight after failures.
    pub fn effective(&self, weight: u32) -> u32 {
        weight.saturating_sub(self.deficit.load(Relaxed))
    }

    /// Gives one back of the weight that failures took.
    pub fn recover(&self) {
        if self.deficit.load(Relaxed) > 0 {
            let more = |deficit: u32| deficit.checked_sub(1);
            let _ = self.deficit.fetch_update(Relaxed, Relaxed, more);
        }
    }

    /// Whether it passes active checks, or has none.
    pub fn is_healthy(&self) -> bool {
        self.healthy.load(Relaxed)
    }

    /// Sets the result of active checks. True: it changed.
    pub fn set_healthy(&self, healthy: bool, now_ms: u64) -> bool {
        let changed = self.healthy.swap(healthy, Relaxed) != healthy;
        match (changed, healthy) {
            (true, true) => self.comes_back(now_ms),
            (true, false) => self.goes_down(now_ms),
            _ => {}
        }
        changed
    }

    /// How long it has been back in service; `None`: it was never out of service.
    pub fn back_since_ms(&self, now_ms: u64) -> Option<u64> {
        match self.back_ms.load(Relaxed) {
            0 => None,
            back_ms => Some(now_ms.saturating_sub(back_ms)),
        }
    }
}
