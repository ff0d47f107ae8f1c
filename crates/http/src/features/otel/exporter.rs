//! The exporter of a configuration: what workers know of it, and what the control thread needs to
//! send.

use std::sync::{Mutex, PoisonError};

use net::{Mailbox, MailboxSender};
use upstream::ResolverPolicy;

use super::batch::SpanBatch;
use super::encode::ExportPreamble;
use super::endpoint::OtelEndpoint;

/// The exporter of a configuration.
pub(crate) struct OtelExporter {
    /// Spans of a batch.
    pub(super) batch_size: usize,
    /// Batches of one worker that may be on their way.
    pub(super) batch_count: usize,
    pub(super) interval_ms: u64,
    pub(super) batches: MailboxSender<SpanBatch>,
    /// Until the control thread takes it.
    work: Mutex<Option<ExportWork>>,
}

/// What the control thread needs.
pub(super) struct ExportWork {
    pub(super) batches: Mailbox<SpanBatch>,
    pub(super) target: ExportTarget,
}

/// Where batches go, and what goes along with them.
pub(super) struct ExportTarget {
    pub(super) endpoint: OtelEndpoint,
    pub(super) names: ResolverPolicy,
    /// Fields of each request.
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) preamble: ExportPreamble,
}

/// The numbers of `otel_exporter`.
#[derive(Clone, Copy)]
pub(super) struct BatchTerms {
    pub(super) interval_ms: u64,
    pub(super) batch_size: usize,
    pub(super) batch_count: usize,
}

impl OtelExporter {
    pub(super) fn new(terms: BatchTerms, target: ExportTarget) -> Self {
        let BatchTerms { interval_ms, batch_size, batch_count } = terms;
        let (sender, batches) = net::mailbox();
        let work = Mutex::new(Some(ExportWork { batches, target }));
        Self { batch_size, batch_count, interval_ms, batches: sender, work }
    }

    /// The work, once.
    pub(super) fn take_work(&self) -> Option<ExportWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
