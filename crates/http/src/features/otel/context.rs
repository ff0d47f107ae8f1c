//! The trace of a request: its ids, which its fields may name, and what was decided about it.

use std::rc::Rc;

use observe::Level;
use session::backend::Attempts;
use wire::request::Field;
use wire::trace_context::{TraceParent, join_tracestate};

use super::settings::Propagation;
use crate::exchange::{Exchange, FeatureState, Request};
use crate::random_ids;

const TRACEPARENT: &[u8] = b"traceparent";
const TRACESTATE: &[u8] = b"tracestate";

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
    let trace = x.states.of::<RequestTrace>();
    if let Some(ids) = trace.ids {
        return ids;
    }
    let mut tracestate = std::mem::take(&mut trace.tracestate);
    let place = x.generation.location(x.main_location());
    let extracts = place.core.own.find().is_some_and(|context: &Propagation| context.extracts());
    let parent = if extracts { extract(&x.request, &mut tracestate) } else { None };
    let ids = SpanIds {
        trace_id: parent.map_or_else(new_trace_id, |parent| parent.trace_id),
        span_id: new_span_id(),
        parent: parent.map(|parent| parent.span_id),
        parent_sampled: parent.is_some_and(|parent| parent.sampled),
    };
    let trace = x.states.of::<RequestTrace>();
    trace.tracestate = tracestate;
    trace.ids = Some(ids);
    ids
}

pub(super) fn new_span_id() -> [u8; 8] {
    random_ids::next().max(1).to_be_bytes()
}

fn new_trace_id() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&new_span_id());
    id[8..].copy_from_slice(&new_span_id());
    id
}

/// The span that the fields name, and its state. Of two spans, none can be meant.
fn extract(request: &Request, tracestate: &mut Vec<u8>) -> Option<TraceParent> {
    let mut parents = values(request, TRACEPARENT);
    let parent = TraceParent::parse(parents.next()?)?;
    if parents.next().is_some() {
        return None;
    }
    join_tracestate(values(request, TRACESTATE), tracestate);
    Some(parent)
}

fn values<'r>(request: &'r Request, name: &'static [u8]) -> impl Iterator<Item = &'r [u8]> {
    let fields = request.head.fields.iter();
    let is_it = move |field: &&Field| {
        field.name.len() == name.len() && request.text(field.name).eq_ignore_ascii_case(name)
    };
    fields.filter(is_it).map(move |field| request.text(field.value))
}

/// Has the fields name the span of this request. Its state is passed on as it was received; a state
/// without the trace that it belongs to is removed.
pub(super) fn inject(x: &mut Exchange) {
    let SpanIds { trace_id, span_id, .. } = ids(x);
    let trace = x.states.of::<RequestTrace>();
    let (sampled, has_state) = (trace.is_sampled, !trace.tracestate.is_empty());
    let parent = TraceParent { trace_id, span_id, sampled };
    if !has_state {
        x.request.remove_field(TRACESTATE);
    }
    if let Err(error) = x.request.set_field(TRACEPARENT, &parent.text()) {
        x.log(Level::Error, format_args!("field \"traceparent\" is not set: {error}"));
    }
}
