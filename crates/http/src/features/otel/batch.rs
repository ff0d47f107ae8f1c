//! Spans that are sent together.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::totals;

/// Spans on their way to the collector. Those of a batch that is dropped have failed.
pub(super) struct SpanBatch {
    pub(super) spans: Vec<u8>,
    count: usize,
    /// How many batches of its worker are on their way.
    pending: Arc<AtomicUsize>,
}

impl SpanBatch {
    pub(super) fn new(spans: Vec<u8>, count: usize, pending: Arc<AtomicUsize>) -> Self {
        pending.fetch_add(1, Relaxed);
        Self { spans, count, pending }
    }

    /// The number of spans.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The collector has them.
    pub(super) fn exported(mut self) {
        totals::add_exported(std::mem::take(&mut self.count));
    }
}

impl Drop for SpanBatch {
    fn drop(&mut self) {
        totals::add_failed(self.count);
        self.pending.fetch_sub(1, Relaxed);
    }
}
