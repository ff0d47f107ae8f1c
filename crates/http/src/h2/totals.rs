//! Counts of HTTP/2 events, and of exceeded limits, for the whole process.
//!
//! A connection counts for itself and adds its counts to the totals at most once a second, and
//! when it is parked or ends. The totals are therefore plain shared atomics.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::http2::counts::{Http2Count, Http2Counts};
use wire::http2::limits::Http2Limit;

static COUNTED: [AtomicU64; Http2Count::COUNT] = [const { AtomicU64::new(0) }; Http2Count::COUNT];

static EXCEEDED: [AtomicU64; Http2Limit::COUNT] = [const { AtomicU64::new(0) }; Http2Limit::COUNT];

/// Adds the counts of a connection.
pub(super) fn add(counts: &Http2Counts) {
    for (total, &count) in COUNTED.iter().zip(counts.all()) {
        if count > 0 {
            total.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Counts a connection that ends because its client exceeded this limit.
pub(super) fn note_exceeded(limit: Http2Limit) {
    EXCEEDED[limit as usize].fetch_add(1, Ordering::Relaxed);
}

/// The number of events since the process started.
pub(crate) fn counted(count: Http2Count) -> u64 {
    COUNTED[count as usize].load(Ordering::Relaxed)
}

/// The number of connections that ended because of a limit, since the process started.
pub(crate) fn exceeded(limit: Http2Limit) -> u64 {
    EXCEEDED[limit as usize].load(Ordering::Relaxed)
}
