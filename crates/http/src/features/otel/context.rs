//! The trace of a request: its ids, which its fields may name, and what was decided about it.

use std::rc::Rc;

use session::backend::Attempts;
use wire::Known;
use wire::request::FieldError;
use wire::trace_context::{TraceParent, join_tracestate};

use super::settings::Propagation;
use super::span_ids;
use crate::exchange::{Exchange, FeatureState, Request};

/// The trace of one request.
#[derive(Default)]
pub(super) struct RequestTrace {
    ids: Option<SpanIds>,
    /// The state that belongs to the parent; empty: none.
    pub(super) tracestate: Vec<u8>,
    pub(super) is_decided: bool,
    pub(super) is_sampled: bool,
    /// Whether spans of its parts are kept.
    pub(super) has_children: bool,
    pub(super) subrequests: Vec<SubrequestSpan>,
}

/// The ids of a request's span.
#[derive(Clone, Copy)]
pub(super) struct SpanIds {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    /// The span that caused the request.
    pub(super) parent: Option<[u8; 8]>,
    pub(super) parent_sampled: bool,
}

/// A subrequest that the request has waited for.
pub(super) struct SubrequestSpan {
    pub(super) name: &'static str,
    pub(super) begun_ms: u64,
    pub(super) ended_ms: u64,
    pub(super) status: u16,
    pub(super) attempts: Rc<Attempts>,
}

impl FeatureState for RequestTrace {
    fn clear(&mut self) {
        let Self { ids, tracestate, is_decided, is_sampled, has_children, subrequests } = self;
        *ids = None;
        tracestate.clear();
        (*is_decided, *is_sampled, *has_children) = (false, false, false);
        subrequests.clear();
    }

    /// A request and its subrequests have the same variables.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.ids = parent.ids;
    }

    fn end_subrequest(&mut self, subrequest: &mut Self) {
        self.ids = self.ids.or(subrequest.ids);
    }
}

/// The ids, made at the first call.
pub(super) fn ids(x: &mut Exchange) -> SpanIds {
    if let Some(ids) = x.states.of::<RequestTrace>().ids {
        return ids;
    }
    let place = x.generation.location(x.main_location());
    let context = place.core.own.find().copied().unwrap_or(Propagation::Ignore);
    *x.states.of::<RequestTrace>().ids_in(context, &x.request)
}

impl RequestTrace {
    /// The ids, made at the first call, of a request in a location with this context.
    pub(super) fn ids_in(&mut self, context: Propagation, request: &Request) -> &SpanIds {
        self.ids.get_or_insert_with(|| {
            let extracts = context.extracts() && request.head.has_any(Known::TraceParent.bit());
            let parent = if extracts { extract(request, &mut self.tracestate) } else { None };
            let [span_id, first, second] = span_ids::next();
            SpanIds {
                trace_id: parent.map_or_else(|| joined(first, second), |parent| parent.trace_id),
                span_id,
                parent: parent.map(|parent| parent.span_id),
                parent_sampled: parent.is_some_and(|parent| parent.sampled),
            }
        })
    }
}

fn joined(first: [u8; 8], second: [u8; 8]) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&first);
    id[8..].copy_from_slice(&second);
    id
}

/// The span that the fields name, and its state. Of two spans, none can be meant.
fn extract(request: &Request, tracestate: &mut Vec<u8>) -> Option<TraceParent> {
    let mut parents = values(request, Known::TraceParent);
    let parent = TraceParent::parse(parents.next()?)?;
    if parents.next().is_some() {
        return None;
    }
    if request.head.has_any(Known::TraceState.bit()) {
        join_tracestate(values(request, Known::TraceState), tracestate);
    }
    Some(parent)
}

fn values(request: &Request, name: Known) -> impl Iterator<Item = &[u8]> {
    request.head.fields_of(name).map(|field| request.text(field.value))
}

impl RequestTrace {
    /// Has the fields name the span of this request, which has ids. Its state is passed on as it
    /// was received; a state without the trace that it belongs to is removed.
    pub(super) fn inject(&self, request: &mut Request) -> Result<(), FieldError> {
        let Some(SpanIds { trace_id, span_id, .. }) = self.ids else { return Ok(()) };
        if self.tracestate.is_empty() && request.head.has_any(Known::TraceState.bit()) {
            request.remove_field(b"tracestate");
        }
        request.set_trace_parent(&TraceParent { trace_id, span_id, sampled: self.is_sampled })
    }
}
