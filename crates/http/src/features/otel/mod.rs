//! Traces: nginx-otel's directives. Requests carry the context of a trace, and a span of each
//! sampled request goes to a collector, in OpenTelemetry's protocol.
//!
//! ```text
//! rewrite: sampled? ids -> the fields of the request ... log: span -> the worker's buffer
//!     full, or `interval` later -> mailbox -> control thread: POST, or a call of gRPC
//! ```
//!
//! The span is written once, at the end of the request, straight into the buffer in the form in
//! which it is sent. Deliberately absent: spans that are open while a request is under way, a
//! library of OpenTelemetry, and any wait of a request for the collector.

mod batch;
mod buffer;
mod child_spans;
mod context;
mod encode;
mod endpoint;
mod export;
mod exporter;
mod keys;
mod lines;
mod sampling;
mod settings;
mod span;
mod span_ids;
#[cfg(test)]
mod tests;
mod totals;
mod variables;

use std::sync::Arc;

use conf::{Load, Result, Template};
use observe::Level;

use super::Layers;
use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;
use crate::site::policy::OwnSettings;
use buffer::WorkerSpans;
use context::RequestTrace;
use exporter::OtelExporter;
use settings::{Propagation, SpanAttribute, TailRule, TraceRule};
use span::SpanRules;

pub(crate) use child_spans::note_subrequest;
pub(crate) use export::SpanExport;
pub use totals::{TraceTotals, totals};
pub(crate) use variables::VARIABLES;

conf::directives! {
    declare {
        /// The collector that spans are sent to, over gRPC, or over HTTP if the endpoint has a path
        /// or port 4318. Lines inside:
        /// - `endpoint [http://|https://]HOST:PORT[/PATH]`
        /// - `trusted_certificate FILE`: authorities that sign the collector's certificate; the
        ///   system's if there is none
        /// - `header NAME VALUE`: a further field of each request, such as a token
        /// - `interval TIME`: how long a span waits for others at most; 5s
        /// - `batch_size NUMBER`: the spans that are sent together; 512
        /// - `batch_count NUMBER`: the batches of one worker that may wait; 4. Spans beyond these
        ///   are dropped and counted.
        ///
        /// Differs: not in nginx's sources; as in nginx-otel, which has no HTTP. See
        /// docs/traces.md.
        ///
        /// ```nginx
        /// otel_exporter {
        ///     endpoint http://127.0.0.1:4318/v1/traces;
        ///     header Authorization "Bearer secret";
        /// }
        /// ```
        otel_exporter(0..=0) {} in MAIN => lines::declare_exporter;
        /// The attribute `service.name` of everything that is sent.
        ///
        /// Syntax: NAME
        /// Default: unknown_service:weir
        /// Differs: not in nginx's sources; as in nginx-otel.
        ///
        /// ```nginx
        /// otel_service_name shop;
        /// ```
        otel_service_name(1..=1) in MAIN => lines::declare_service_name;
        /// An attribute of everything that is sent.
        ///
        /// Syntax: NAME VALUE
        /// Differs: not in nginx's sources; as in nginx-otel.
        ///
        /// ```nginx
        /// otel_resource_attr deployment.environment.name production;
        /// ```
        otel_resource_attr(2..=2) in MAIN => lines::declare_resource_attribute;
    }

    in MAIN | SERVER | LOCATION;

    /// Whether a span of a request is sent. The string is evaluated once, before the rewrite rules
    /// of the location; `on` and `1` mean yes.
    /// - `errors`: also if the status is 500 or more
    /// - `slow=TIME`: also if the request takes at least this long
    ///
    /// Syntax: on | off | STRING [errors] [slow=TIME]
    /// Default: off
    /// Differs: not in nginx's sources; as in nginx-otel, which has neither `errors` nor `slow`.
    ///
    /// ```nginx
    /// split_clients $otel_trace_id $sampled {
    ///     10% on;
    ///     * off;
    /// }
    /// otel_exporter {
    ///     endpoint 127.0.0.1:4317;
    /// }
    /// otel_trace $sampled errors slow=500ms;
    /// ```
    otel_trace: Option<TraceRule>,
    /// What becomes of the fields `traceparent` and `tracestate`:
    /// - `extract`: a request continues the trace that its fields name
    /// - `inject`: backends get fields of the span of this request
    /// - `propagate`: both
    /// - `ignore`: neither; fields of the client are passed on as they are
    ///
    /// Differs: not in nginx's sources; as in nginx-otel.
    ///
    /// ```nginx
    /// location / {
    ///     otel_trace_context propagate;
    ///     proxy_pass http://127.0.0.1:3000;
    /// }
    /// ```
    otel_trace_context: Propagation = "ignore",
    /// The name of spans; by default the name of the location.
    ///
    /// Differs: not in nginx's sources; as in nginx-otel.
    ///
    /// ```nginx
    /// otel_span_name "$request_method $host";
    /// ```
    otel_span_name: Option<Template>,
    /// An attribute of spans. Lines in a block replace those of the enclosing blocks. An attribute
    /// whose name begins with `http.request.header.` or `http.response.header.` is a list of one
    /// string.
    ///
    /// Syntax: NAME STRING
    /// Differs: not in nginx's sources; as in nginx-otel.
    ///
    /// ```nginx
    /// otel_span_attr http.response.header.content.type $sent_http_content_type;
    /// ```
    otel_span_attr: Vec<SpanAttribute>,
    /// Whether spans are sent for parts of a request, too: the wait for a server of a busy group,
    /// each attempt at a server, connecting to it, and `auth_request`.
    ///
    /// Differs: not in nginx's sources.
    ///
    /// ```nginx
    /// otel_child_spans on;
    /// ```
    otel_child_spans: bool = "off",
}

/// Builds the exporter, after the whole configuration was read. `main` are the settings of
/// `http {}`.
pub(crate) fn build(main: &Layers, load: &mut Load<'_>) -> Result<()> {
    let names = super::resolver::policy_of_main(main, load);
    if let Some(exporter) = lines::build(names, load)? {
        load.own.of::<OwnSettings>().add(Arc::new(exporter));
    }
    Ok(())
}

/// Adds what a location needs: nothing if there is neither an exporter nor a context.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let exporter = location.load.own.of::<OwnSettings>().find::<Arc<OtelExporter>>().cloned();
    if let (Some(rule), None) = (&conf.otel_trace, &exporter) {
        return Err(rule.from.error("\"otel_exporter\" block is missing"));
    }
    let has_context = conf.otel_trace_context != Propagation::Ignore;
    if has_context {
        location.core.own.add(conf.otel_trace_context);
    }
    if has_context || conf.otel_trace.is_some() {
        let conf = conf.clone();
        location.rewrite(move |x| {
            begin(&conf, x);
            Flow::Next
        });
    }
    if let Some(exporter) = exporter {
        location.worker_slot::<WorkerSpans>();
        let server = location.server_names.first().map(|name| name.text.clone());
        let names = (&*location.name, &*server.unwrap_or_default());
        let rules = SpanRules::new(names, conf.otel_span_name.clone(), &conf.otel_span_attr);
        let conf = conf.clone();
        location.logger(move |x| finish(&conf, &rules, &exporter, x));
    }
    Ok(())
}

impl Conf {
    fn samples(&self, x: &mut Exchange) -> bool {
        self.otel_trace.as_ref().is_some_and(|rule| rule.samples(x))
    }

    fn tail(&self) -> TailRule {
        self.otel_trace.as_ref().map(|rule| rule.tail).unwrap_or_default()
    }
}

/// Decides in the first location whose settings say anything. As in nginx-otel, internal redirects
/// change nothing. The rules of the server itself run in a location of their own, before.
fn begin(conf: &Conf, x: &mut Exchange) {
    let is_over = x.location == x.server().outer || x.is_subrequest();
    if is_over || x.states.of::<RequestTrace>().is_decided {
        return;
    }
    decide(conf, x);
    if conf.otel_trace_context.injects()
        && let Err(error) = x.states.of::<RequestTrace>().inject(&mut x.request)
    {
        x.log(Level::Error, format_args!("field \"traceparent\" is not set: {error}"));
    }
}

/// Makes the ids before the decision, which mostly depends on them.
fn decide(conf: &Conf, x: &mut Exchange) {
    let context = conf.otel_trace_context;
    if context != Propagation::Ignore {
        x.states.of::<RequestTrace>().ids_in(context, &x.request);
    }
    let is_sampled = conf.samples(x);
    let trace = x.states.of::<RequestTrace>();
    trace.is_decided = true;
    trace.is_sampled = is_sampled;
    trace.has_children = conf.otel_child_spans && (is_sampled || conf.tail().applies_at_all());
}

/// Writes the spans of a request that is over. One that was answered before it had a location is
/// decided about now. A request that is not valid has none.
fn finish(conf: &Conf, rules: &SpanRules, exporter: &Arc<OtelExporter>, x: &mut Exchange) {
    let trace = x.states.find::<RequestTrace>();
    let (is_decided, is_sampled) =
        trace.map_or((false, false), |trace| (trace.is_decided, trace.is_sampled));
    if x.is_subrequest() || !is_sampled && conf.otel_trace.is_none() {
        return;
    }
    let is_sampled = match is_decided {
        true => is_sampled,
        false if x.request.uri.is_empty() => return,
        false => {
            decide(conf, x);
            x.states.of::<RequestTrace>().is_sampled
        }
    };
    if is_sampled || conf.tail().applies(x) {
        let generation = x.generation.clone();
        let spans = generation.worker.of::<WorkerSpans>();
        spans.add(exporter, |out| rules.write_all(x, out));
    }
}
