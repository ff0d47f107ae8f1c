//! The span of a request, with the attributes of nginx-otel (OpenTelemetry's conventions 1.16).

use conf::Template;
use wire::{Known, Method};

use super::child_spans::{ChildSpans, SpanClock};
use super::context::{RequestTrace, SpanIds, ids};
use super::encode::{self, NS_PER_MS, SpanEncoder, SpanHead, SpanKind};
use super::keys::{
    HOST_NAME, HOST_PORT, METHOD, METHOD_GET, PEER_ADDRESS, PEER_PORT, REQUEST_LENGTH,
    RESPONSE_LENGTH, ROUTE, SCHEME_HTTP, SCHEME_HTTPS, STATUS_CODE, TARGET, USER_AGENT, flavor,
};
use super::settings::{SpanAttribute, is_failure};
use crate::exchange::Exchange;

/// What is known of the spans of a location before there is a request.
pub(super) struct SpanRules {
    /// `otel_span_name`
    name: Option<Template>,
    /// The attributes that are alike in all spans, as they are sent.
    constants: Vec<u8>,
    /// Whether the server has no name, so that the request's is used.
    lacks_host: bool,
    /// The attributes of `otel_span_attr` that depend on the request.
    attributes: Vec<SpanAttribute>,
}

impl SpanRules {
    /// The rules of a location of this name, of a server of that one.
    pub(super) fn new(
        (route, server): (&[u8], &[u8]),
        name: Option<Template>,
        attributes: &[SpanAttribute],
    ) -> Self {
        let mut constants = Vec::new();
        if !route.is_empty() {
            encode::put_text(ROUTE, route, &mut constants);
        }
        let host = server.strip_prefix(b".").unwrap_or(server);
        if !host.is_empty() {
            encode::put_text(HOST_NAME, host, &mut constants);
        }
        let is_fixed = |one: &SpanAttribute| one.value.as_fixed().is_some() && !one.is_list;
        let (fixed, attributes): (Vec<_>, Vec<_>) = attributes.iter().cloned().partition(is_fixed);
        for one in &fixed {
            let text = one.value.as_fixed().unwrap_or_default();
            encode::put_text(&one.key, text, &mut constants);
        }
        Self { name, constants, lacks_host: host.is_empty(), attributes }
    }

    /// Writes the spans of a request. Returns their number.
    pub(super) fn write_all(&self, x: &mut Exchange, out: &mut Vec<u8>) -> usize {
        let ids = ids(x);
        let trace = x.states.of::<RequestTrace>();
        let has_children = trace.has_children;
        let tracestate = std::mem::take(&mut trace.tracestate);
        let subrequests = std::mem::take(&mut trace.subrequests);
        let mut count = self.write_request(x, &ids, &tracestate, out);
        if has_children {
            let clock =
                SpanClock { unix_ms: x.started_unix_ms, worker_ms: x.started_ns / NS_PER_MS };
            let mut children = ChildSpans::new(ids.trace_id, clock, out);
            children.add_all(ids.span_id, &x.backends.attempts, &subrequests);
            count += children.count();
        }
        let trace = x.states.of::<RequestTrace>();
        (trace.tracestate, trace.subrequests) = (tracestate, subrequests);
        count
    }

    fn write_request(
        &self,
        x: &mut Exchange,
        ids: &SpanIds,
        tracestate: &[u8],
        out: &mut Vec<u8>,
    ) -> usize {
        let mut text = x.scratch();
        self.name.iter().for_each(|name| name.render(x, &mut text));
        let name = match (&self.name, &*x.location().name) {
            (Some(_), _) => &text[..],
            // The server itself has answered.
            (None, b"") => x.request.method_name(),
            (None, route) => route,
        };
        let mut span = SpanEncoder::begin(
            out,
            &SpanHead {
                trace_id: &ids.trace_id,
                span_id: &ids.span_id,
                parent: ids.parent,
                tracestate,
                name,
                kind: SpanKind::Server,
                begun_ms: x.started_unix_ms,
                ended_ms: x.started_unix_ms + x.age_ms(),
            },
        );
        self.write_attributes(x, &mut span);
        for attribute in &self.attributes {
            text.clear();
            attribute.value.render(x, &mut text);
            match attribute.is_list {
                true => span.list(&attribute.key, &text),
                false => span.text(&attribute.key, &text),
            }
        }
        x.give_scratch(text);
        span.finish(is_failure(x.status()))
    }

    fn write_attributes(&self, x: &Exchange, span: &mut SpanEncoder<'_>) {
        let request = &x.request;
        let (scheme, usual_port) = x.client.scheme();
        span.put(&self.constants);
        if self.lacks_host {
            span.text(HOST_NAME, &request.host);
        }
        match request.head.method {
            Method::Get => span.put(METHOD_GET),
            _ => span.text(METHOD, request.method_name()),
        }
        span.put(if scheme == "https" { SCHEME_HTTPS } else { SCHEME_HTTP });
        span.put(flavor(request.head.version));
        span.text(TARGET, request.text(request.head.target));
        if let Some(agent) = request.field(Known::UserAgent) {
            span.text(USER_AGENT, agent);
        }
        span.number(REQUEST_LENGTH, request.body.length().unwrap_or(0));
        let port = x.client.local().map(|local| local.port());
        if let Some(port) = port.filter(|port| *port != usual_port) {
            span.number(HOST_PORT, port.into());
        }
        span.text(PEER_ADDRESS, x.client.address());
        span.number(PEER_PORT, x.client.peer.map_or(0, |peer| peer.port().into()));
        span.number(RESPONSE_LENGTH, x.reply.body_bytes_sent());
        if x.status() != 0 {
            span.number(STATUS_CODE, x.status().into());
        }
    }
}
