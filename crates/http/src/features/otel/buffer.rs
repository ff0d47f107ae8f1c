//! The spans of one worker that wait to be sent together.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use observe::Level;
use session::WorkerSlot;

use super::batch::SpanBatch;
use super::exporter::OtelExporter;
use super::totals;
use crate::site::Generation;

/// The bytes at which a batch is sent although it has room for more spans: collectors accept
/// messages of 4 MB over gRPC.
const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The spans of one worker and generation.
#[derive(Default)]
pub(super) struct WorkerSpans(Rc<SpanBuffer>);

#[derive(Default)]
struct SpanBuffer {
    /// Where they go; known from the first span on.
    exporter: OnceCell<Arc<OtelExporter>>,
    spans: RefCell<Vec<u8>>,
    count: Cell<usize>,
    /// The size of the last batch: the next one will need about as much memory.
    last_bytes: Cell<usize>,
    /// The number of batches on their way.
    pending: Arc<AtomicUsize>,
    /// Spans that were dropped and are not counted in the totals yet.
    dropped: Cell<u64>,
    /// Whether a task will flush.
    is_due: Cell<bool>,
}

impl WorkerSlot<Generation> for WorkerSpans {
    fn worker_left(&self, _: &Generation) {
        self.0.flush();
    }
}

impl WorkerSpans {
    /// Adds the spans that `write` appends; it returns their number. They are dropped if too many
    /// batches are on their way.
    pub(super) fn add(
        &self,
        exporter: &Arc<OtelExporter>,
        write: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        let buffer = &self.0;
        if !buffer.is_due.get() {
            buffer.flush_later(exporter);
        }
        if buffer.count.get() == 0 && !buffer.begin(exporter) {
            buffer.dropped.set(buffer.dropped.get() + 1);
            return;
        }
        let mut spans = buffer.spans.borrow_mut();
        let count = buffer.count.get() + write(&mut spans);
        let is_full = count >= exporter.batch_size || spans.len() >= BATCH_BYTES_MAX;
        drop(spans);
        buffer.count.set(count);
        if is_full {
            buffer.send();
        }
    }
}

impl SpanBuffer {
    /// Makes room for a batch. Returns whether there may be another one.
    fn begin(&self, exporter: &OtelExporter) -> bool {
        let is_free = self.pending.load(Relaxed) < exporter.batch_count;
        let mut spans = self.spans.borrow_mut();
        if is_free && spans.capacity() == 0 {
            let usual = self.last_bytes.get();
            spans.reserve(usual + usual / 8);
        }
        is_free
    }

    /// Starts the task that sends what there is after the interval.
    #[cold]
    fn flush_later(self: &Rc<Self>, exporter: &Arc<OtelExporter>) {
        self.is_due.set(true);
        self.exporter.get_or_init(|| exporter.clone());
        let (buffer, interval) = (Rc::downgrade(self), Duration::from_millis(exporter.interval_ms));
        net::spawn_if_running(async move {
            net::sleep(interval).await;
            if let Some(buffer) = Weak::upgrade(&buffer) {
                buffer.is_due.set(false);
                buffer.flush();
            }
        });
    }

    fn flush(&self) {
        if self.count.get() > 0 {
            self.send();
        }
        let dropped = self.dropped.take();
        if dropped > 0 {
            totals::add_dropped(dropped);
            let text = "the collector does not keep up";
            observe::log(Level::Notice, format_args!("otel dropped {dropped} spans: {text}"));
        }
    }

    fn send(&self) {
        let Some(exporter) = self.exporter.get() else { return };
        let (spans, count) = (self.spans.take(), self.count.take());
        self.last_bytes.set(spans.len());
        let pending = self.pending.clone();
        exporter.batches.send(SpanBatch::new(spans, count, pending));
    }
}
