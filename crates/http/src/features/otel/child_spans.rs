//! Spans of the parts of a request: made at its end, of the times that are kept for the variables
//! of backends.

use net::{Address, clock};
use session::backend::{Attempts, UpstreamAttempt};

use super::context::{RequestTrace, SubrequestSpan};
use super::encode::{SpanEncoder, SpanHead, SpanKind};
use super::keys::{PEER_ADDRESS, PEER_PORT, RESPONSE_LENGTH, STATUS_CODE};
use super::settings::is_failure;
use super::span_ids;
use crate::exchange::Exchange;

/// The most spans of the parts of one request.
const CHILD_SPANS_MAX: usize = 64;

/// Keeps a subrequest that began at that time and has its reply, if spans of parts are wanted.
pub(crate) fn note_subrequest(
    x: &mut Exchange,
    name: &'static str,
    begun_ms: u64,
    subrequest: &Exchange,
) {
    if !x.states.find::<RequestTrace>().is_some_and(|trace| trace.has_children) {
        return;
    }
    let kept = &mut x.states.of::<RequestTrace>().subrequests;
    if kept.len() < CHILD_SPANS_MAX {
        kept.push(SubrequestSpan {
            name,
            begun_ms,
            ended_ms: clock::now_ms(),
            status: subrequest.status(),
            attempts: subrequest.backends.attempts.clone(),
        });
    }
}

/// The beginning of a request on the worker's clock and on the calendar.
#[derive(Clone, Copy)]
pub(super) struct SpanClock {
    pub(super) unix_ms: u64,
    pub(super) worker_ms: u64,
}

/// Writes the spans of the parts of one request.
pub(super) struct ChildSpans<'o> {
    trace_id: [u8; 16],
    clock: SpanClock,
    out: &'o mut Vec<u8>,
    count: usize,
}

/// A span to be written, with times on the worker's clock.
struct SpanPart<'a> {
    parent: [u8; 8],
    name: &'a str,
    kind: SpanKind,
    begun_ms: u64,
    ended_ms: u64,
    is_failure: bool,
}

impl<'o> ChildSpans<'o> {
    pub(super) fn new(trace_id: [u8; 16], clock: SpanClock, out: &'o mut Vec<u8>) -> Self {
        Self { trace_id, clock, out, count: 0 }
    }

    /// The number of spans that were written.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add_all(
        &mut self,
        parent: [u8; 8],
        attempts: &Attempts,
        subrequests: &[SubrequestSpan],
    ) {
        for one in subrequests {
            let SubrequestSpan { name, begun_ms, ended_ms, .. } = *one;
            let (kind, is_failure) = (SpanKind::Internal, is_failure(one.status));
            let part = SpanPart { parent, name, kind, begun_ms, ended_ms, is_failure };
            let id = self.add(&part, |span| span.number(STATUS_CODE, one.status.into()));
            one.attempts.for_each(|attempt| self.add_attempt(id, attempt));
        }
        attempts.for_each(|attempt| self.add_attempt(parent, attempt));
    }

    /// The wait for a server, if there was one; the attempt; within it, connecting, unless the
    /// connection was there.
    fn add_attempt(&mut self, parent: [u8; 8], attempt: &UpstreamAttempt) {
        let begun_ms = attempt.begun_ms;
        let (kind, is_failure) = (SpanKind::Internal, false);
        if let Some(waited_ms) = attempt.queue_ms.get().filter(|ms| *ms > 0) {
            let (begun_ms, ended_ms) = (begun_ms.saturating_sub(waited_ms), begun_ms);
            let part = SpanPart { parent, name: "queue", kind, begun_ms, ended_ms, is_failure };
            self.add(&part, |_| {});
        }
        let ended_ms = begun_ms + attempt.response_ms.get().unwrap_or_else(|| attempt.age_ms());
        let part = SpanPart {
            parent,
            name: "upstream",
            kind: SpanKind::Client,
            begun_ms,
            ended_ms,
            is_failure: attempt.server.is_err() || is_failure_of(attempt),
        };
        let id = self.add(&part, |span| write_attributes(attempt, span));
        if let Some(connect_ms) = attempt.connect_ms.get().filter(|ms| *ms > 0) {
            let ended_ms = begun_ms + connect_ms;
            let part =
                SpanPart { parent: id, name: "connect", kind, begun_ms, ended_ms, is_failure };
            self.add(&part, |_| {});
        }
    }

    /// Writes a span, unless there are enough. Returns its id.
    fn add(
        &mut self,
        part: &SpanPart<'_>,
        attributes: impl FnOnce(&mut SpanEncoder<'_>),
    ) -> [u8; 8] {
        let [span_id] = span_ids::next();
        if self.count >= CHILD_SPANS_MAX {
            return span_id;
        }
        let SpanClock { unix_ms, worker_ms } = self.clock;
        let unix_ms = |ms: u64| (unix_ms + ms).saturating_sub(worker_ms);
        let mut span = SpanEncoder::begin(
            self.out,
            &SpanHead {
                trace_id: &self.trace_id,
                span_id: &span_id,
                parent: Some(part.parent),
                tracestate: b"",
                name: part.name.as_bytes(),
                kind: part.kind,
                begun_ms: unix_ms(part.begun_ms),
                ended_ms: unix_ms(part.ended_ms),
            },
        );
        attributes(&mut span);
        self.count += span.finish(part.is_failure);
        span_id
    }
}

fn is_failure_of(attempt: &UpstreamAttempt) -> bool {
    is_failure(attempt.status.get())
}

fn write_attributes(attempt: &UpstreamAttempt, span: &mut SpanEncoder<'_>) {
    match attempt.server.as_ref().map(|server| server.address()) {
        Ok(Address::Ip(address)) => {
            span.text(PEER_ADDRESS, address.ip().to_string().as_bytes());
            span.number(PEER_PORT, address.port().into());
        }
        _ => span.text(PEER_ADDRESS, attempt.name()),
    }
    if attempt.status.get() != 0 {
        span.number(STATUS_CODE, attempt.status.get().into());
    }
    span.number(RESPONSE_LENGTH, attempt.response_length.get());
}
