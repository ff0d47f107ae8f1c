//! How many spans this process has exported and lost.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use metrics::tree::{StatusTree, Visitor};

static EXPORTED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Numbers of spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceTotals {
    /// Accepted by a collector.
    pub exported: u64,
    /// Never sent, because too many batches waited.
    pub dropped: u64,
    /// In batches that a collector refused or did not take.
    pub failed: u64,
}

/// The numbers so far.
pub fn totals() -> TraceTotals {
    TraceTotals {
        exported: EXPORTED.load(Relaxed),
        dropped: DROPPED.load(Relaxed),
        failed: FAILED.load(Relaxed),
    }
}

/// Adds the numbers to what the program shows of itself.
pub(super) fn show(tree: &mut StatusTree) {
    tree.fields(&[b"traces"], |out: &mut dyn Visitor| {
        let all = totals();
        out.number(b"exported", all.exported);
        out.number(b"dropped", all.dropped);
        out.number(b"failed", all.failed);
    });
}

pub(super) fn add_exported(spans: usize) {
    EXPORTED.fetch_add(spans as u64, Relaxed);
}

/// Called once per interval, not for each span.
pub(super) fn add_dropped(spans: u64) {
    DROPPED.fetch_add(spans, Relaxed);
}

pub(super) fn add_failed(spans: usize) {
    FAILED.fetch_add(spans as u64, Relaxed);
}
