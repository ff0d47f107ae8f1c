//! Spans and contexts of requests, without sockets. crates/weir/tests/traces.rs has the collector.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::testing::{ReceivedSpan, ReceivedSpans};

use super::exporter::{ExportWork, OtelExporter};
use crate::testing::{TestSite, refusal, site};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";
const STATE: &str = "congo=ucfJifl5GOE,rojo=00f067aa0ba902b7";

/// A site and what its control thread would get.
struct Traced {
    site: TestSite,
    work: ExportWork,
}

/// A site that sends each span on its own.
fn traced(http: &str) -> Traced {
    traced_by("batch_size 1;", http)
}

fn traced_by(terms: &str, http: &str) -> Traced {
    let exporter = format!("otel_exporter {{ endpoint 127.0.0.1:4317; {terms} }}");
    let site = site(&format!("{exporter} {http}"));
    let exporter = site.generation.own.find::<Arc<OtelExporter>>().unwrap();
    let work = exporter.take_work().unwrap();
    Traced { site, work }
}

impl Traced {
    fn next(&mut self) -> Option<ReceivedSpans> {
        let mut cx = Context::from_waker(Waker::noop());
        match self.work.batches.poll_next(&mut cx) {
            Poll::Ready(Some(batch)) => {
                let message = self.work.target.preamble.message(&batch.spans);
                Some(ReceivedSpans::decode(&message))
            }
            _ => None,
        }
    }

    /// The only span of the next batch.
    fn span(&mut self) -> ReceivedSpan {
        let mut received = self.next().expect("a batch");
        assert_eq!(received.spans.len(), 1);
        received.spans.remove(0)
    }

    fn expect_none(&mut self) {
        assert!(self.next().is_none());
    }
}

#[test]
fn a_span_has_the_attributes_of_nginx_otel() {
    let mut traced = traced(
        "otel_trace on; server { server_name s.test t.test;
         location /ok { return 200 OK; } location ~ ^/err { return 500 ERR; } }",
    );
    traced.site.get_with("/ok?a=%20", "User-Agent: a/1\n");
    let span = traced.span();
    assert_eq!((&*span.name, span.kind, span.is_failure), ("/ok", 2, false));
    assert_eq!((span.trace_id.len(), span.span_id.len(), &*span.parent), (32, 16, ""));
    assert!(span.start_ns > 0 && span.end_ns >= span.start_ns);
    let expected = [
        ("http.flavor", "1.1"),
        ("http.method", "GET"),
        ("http.request_content_length", "0"),
        ("http.response_content_length", "0"),
        ("http.route", "/ok"),
        ("http.scheme", "http"),
        ("http.status_code", "200"),
        ("http.target", "/ok?a=%20"),
        ("http.user_agent", "a/1"),
        ("net.host.name", "s.test"),
        ("net.sock.peer.addr", "127.0.0.1"),
        ("net.sock.peer.port", "12345"),
    ];
    let found = span.attributes.iter().map(|(name, value)| (&**name, &**value));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    traced.site.send("POST /err HTTP/1.0\nContent-Length: 0\n\n");
    let failed = traced.span();
    assert_eq!((&*failed.name, failed.is_failure), ("^/err", true));
    assert_eq!((failed.attribute("http.method"), failed.attribute("http.flavor")), ("POST", "1.0"));
    assert_eq!(failed.attribute("http.status_code"), "500");
    assert_ne!(failed.trace_id, span.trace_id);
}

#[test]
fn names_and_attributes_come_from_the_configuration() {
    let mut traced = traced(
        "otel_trace on; otel_span_attr outer 1; otel_span_name $request_method; server {
         location /own { otel_span_name custom; otel_span_attr http.request $request;
             otel_span_attr http.response.header.content.type $sent_http_content_type;
             return 200 OK; }
         location / { return 204; } }",
    );
    traced.site.get("/own");
    let span = traced.span();
    assert_eq!((&*span.name, span.attribute("http.request")), ("custom", "GET /own HTTP/1.1"));
    assert_eq!(span.attribute("http.response.header.content.type"), "[text/plain]");
    assert_eq!(span.attribute("outer"), "");
    traced.site.get("/");
    let span = traced.span();
    assert_eq!((&*span.name, span.attribute("outer")), ("GET", "1"));
}

#[test]
fn a_long_text_is_cut() {
    let mut traced = traced(
        "otel_trace on; otel_span_attr long $arg_a$arg_a; server { location / { return 204; } }",
    );
    traced.site.get(&format!("/?a={}", "x".repeat(5000)));
    assert_eq!(traced.span().attribute("long").len(), 8192);
}

#[test]
fn only_sampled_requests_have_spans() {
    let mut traced = traced(
        "split_clients $otel_trace_id $all { * on; } split_clients $otel_trace_id $none { * off; }
         server { location / { return 204; } location /off { otel_trace off; return 204; }
         location /all { otel_trace $all; return 204; }
         location /one { otel_trace $arg_a; return 204; }
         location /none { otel_trace $none; return 204; } }",
    );
    for (target, is_sampled) in [
        ("/", false),
        ("/off", false),
        ("/all", true),
        ("/none", false),
        ("/one?a=1", true),
        ("/one?a=on", true),
        ("/one?a=yes", false),
    ] {
        traced.site.get(target);
        assert_eq!(traced.next().is_some(), is_sampled, "{target}");
    }
}

#[test]
fn a_share_of_the_traces_is_that_of_the_variable() {
    let mut traced = traced(
        "split_clients $otel_trace_id $half { 50% on; * off; } server {
         location / { otel_trace $half; return 200 $half; }
         location /set { set $half on; error_page 404 =200 /after; return 404; }
         location /after { otel_trace $half; return 200; } }",
    );
    let mut counts = [0; 2];
    for _ in 0..100 {
        let is_sampled = traced.site.get("/").body() == "on";
        assert_eq!(traced.next().is_some(), is_sampled);
        counts[usize::from(is_sampled)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
    for _ in 0..10 {
        traced.site.get("/set");
        assert!(traced.next().is_some(), "a value that is set counts");
    }
}

#[test]
fn variables_agree_with_the_span() {
    let mut traced = traced(
        "otel_trace on; otel_trace_context extract; server { location / { return 200
         '$otel_trace_id $otel_span_id $otel_parent_id $otel_parent_sampled'; } }",
    );
    let answer = traced.site.get("/").body();
    let span = traced.span();
    assert_eq!(answer, format!("{} {}  0", span.trace_id, span.span_id));
    let fields = format!("Traceparent: {PARENT}\nTracestate: {STATE}\n");
    let answer = traced.site.get_with("/", &fields).body();
    let span = traced.span();
    let [trace, parent] = [&PARENT[3..35], &PARENT[36..52]];
    assert_eq!(answer, format!("{trace} {} {parent} 1", span.span_id));
    assert_eq!((&*span.trace_id, &*span.parent, &*span.tracestate), (trace, parent, STATE));
    assert_ne!(span.span_id, parent);
}

#[test]
fn variables_need_no_exporter() {
    let site = site("server { location / { return 200 $otel_trace_id$otel_parent_sampled; } }");
    let answer = site.get_with("/", &format!("Traceparent: {PARENT}\n")).body();
    assert!(answer.len() == 33 && answer.ends_with('0') && !answer.starts_with(&PARENT[3..35]));
}

#[test]
fn the_context_is_passed_on_as_configured() {
    const FIELDS: &str = "return 200 '$http_traceparent $http_tracestate';";
    let mut traced = traced(&format!(
        "otel_trace on; server {{
         location /ignore {{ {FIELDS} }}
         location /extract {{ otel_trace_context extract; {FIELDS} }}
         location /inject {{ otel_trace_context inject; {FIELDS} }}
         location /propagate {{ otel_trace_context propagate; {FIELDS} }} }}"
    ));
    let sent = format!("Traceparent: {PARENT}\nTracestate: {STATE}\n");
    for target in ["/ignore", "/extract", "/inject", "/propagate"] {
        for (sent, has_parent) in [("", false), (&sent, true)] {
            let answer = traced.site.get_with(target, sent).body();
            let span = traced.span();
            let continues = has_parent && matches!(target, "/extract" | "/propagate");
            assert_eq!(span.trace_id == PARENT[3..35], continues, "{target}");
            assert_eq!(&*span.tracestate, if continues { STATE } else { "" }, "{target}");
            let own = format!("00-{}-{}-01 {}", span.trace_id, span.span_id, span.tracestate);
            let expected = match target {
                "/inject" | "/propagate" => &own,
                _ if has_parent => &format!("{PARENT} {STATE}"),
                _ => " ",
            };
            assert_eq!(&answer, expected, "{target}");
        }
    }
}

#[test]
fn fields_that_are_invalid_begin_a_new_trace() {
    let site = site(
        "server { location / { otel_trace_context propagate;
         return 200 '$otel_parent_id $http_traceparent $http_tracestate'; } }",
    );
    let upper = PARENT.to_ascii_uppercase();
    for sent in [
        "Traceparent: x\n".to_owned(),
        format!("Traceparent: {upper}\nTracestate: {STATE}\n"),
        format!("Traceparent: {PARENT}\nTraceparent: {PARENT}\n"),
    ] {
        let answer = site.get_with("/", &sent).body();
        assert!(answer.starts_with(" 00-") && answer.ends_with("-00 "), "{answer}");
        assert!(!answer.contains(&PARENT[3..35]), "{answer}");
    }
    let answer = site.get_with("/", &format!("Traceparent: {PARENT}\nTracestate: A=1\n")).body();
    assert!(answer.starts_with(&format!("{} 00-{}", &PARENT[36..52], &PARENT[3..35])), "{answer}");
    assert!(answer.ends_with("-00 "), "{answer}");
}

#[test]
fn an_internal_redirect_changes_neither_decision_nor_ids() {
    let mut traced = traced(
        "server { error_page 404 /page;
         location /on { otel_trace on; otel_trace_context inject; return 404; }
         location /off { otel_trace off; return 404; }
         location /page { otel_trace on; otel_span_attr id $otel_span_id; return 200 p; } }",
    );
    traced.site.get("/on");
    let span = traced.span();
    assert_eq!((&*span.name, span.attribute("id")), ("/page", &*span.span_id));
    assert_eq!(span.attribute("http.status_code"), "404");
    traced.expect_none();
    traced.site.get("/off");
    traced.expect_none();
}

#[test]
fn a_request_that_the_server_itself_answers_has_a_span() {
    let mut traced = traced("server { otel_trace on; return 301 /x; }");
    traced.site.get("/");
    let span = traced.span();
    assert_eq!((&*span.name, span.attribute("http.status_code")), ("GET", "301"));
    traced.site.get("/../..");
    traced.expect_none();
}

#[test]
fn failures_and_slow_requests_are_decided_at_the_end() {
    let mut traced = traced(
        "server { auth_delay 600ms;
         location /e { otel_trace off errors; if ($arg_s) { return 503; } return 404; }
         location /s { otel_trace 0 slow=600ms; return 401; }
         location /never { otel_trace off errors slow=700ms; deny all; return 401; } }",
    );
    for (target, is_sent) in [("/e", false), ("/e?s=1", true), ("/never", false)] {
        traced.site.get(target);
        assert_eq!(traced.next().is_some(), is_sent, "{target}");
    }
}

#[test]
fn a_full_batch_is_sent_and_too_many_are_dropped() {
    let mut traced = traced_by(
        "batch_size 2; batch_count 2;",
        "otel_trace on; otel_service_name shop; otel_resource_attr a 1; otel_resource_attr a 2;
         server { location / { return 204; } }",
    );
    traced.site.get("/");
    traced.expect_none();
    (0..4).for_each(|_| _ = traced.site.get("/"));
    // The fifth span was dropped: two batches are on their way.
    let first = traced.next().unwrap();
    assert_eq!((first.spans.len(), &*first.scope), (2, "weir"));
    let resource = first.resource.iter().map(|(name, value)| (&**name, &**value));
    assert_eq!(resource.collect::<Vec<_>>(), [("a", "2"), ("service.name", "shop")]);
    assert_eq!(traced.next().unwrap().spans.len(), 2);
    traced.expect_none();
    (0..2).for_each(|_| _ = traced.site.get("/"));
    assert_eq!(traced.next().unwrap().spans.len(), 2);
    traced.expect_none();
}

#[test]
fn the_rest_is_sent_when_the_worker_leaves() {
    let mut traced = traced_by("", "otel_trace on; server { location / { return 204; } }");
    traced.site.generation.start();
    traced.site.get("/");
    traced.expect_none();
    let Traced { site, mut work } = traced;
    let exporter = site.generation.own.find::<Arc<OtelExporter>>().unwrap().clone();
    drop(site);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        matches!(work.batches.poll_next(&mut cx), Poll::Ready(Some(batch)) if batch.count() == 1)
    );
    drop(exporter);
    assert!(matches!(work.batches.poll_next(&mut cx), Poll::Ready(None)));
}

#[test]
fn a_subrequest_has_a_span_only_as_a_part() {
    let mut traced = traced_by(
        "batch_size 2;",
        "otel_trace on; otel_child_spans on; log_subrequest on; server {
         location / { auth_request /judge; empty_gif; }
         location /judge { otel_trace_context inject; return 200; } }",
    );
    traced.site.get("/");
    let spans = traced.next().unwrap().spans;
    let [request, judge] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*request.name, &*judge.name, judge.kind), ("/", "auth_request", 1));
    assert_eq!((&judge.parent, &judge.trace_id), (&request.span_id, &request.trace_id));
    assert_eq!(judge.attribute("http.status_code"), "200");
}

#[test]
fn invalid_lines_are_refused() {
    let exporter = |lines: &str| refusal(&format!("otel_exporter {{\n{lines}\n}} server {{ }}"));
    let table = [
        ("", "\"otel_exporter\" requires \"endpoint\":1"),
        ("endpoint c;", "\"endpoint\" directive of \"otel_exporter\" no port in \"c\":2"),
        (
            "endpoint c:1 2;",
            "invalid number of arguments in \"endpoint\" directive of \"otel_exporter\":2",
        ),
        (
            "endpoint c:1; endpoint c:2;",
            "\"endpoint\" directive of \"otel_exporter\" is duplicate:2",
        ),
        ("interval 0;", "\"interval\" directive of \"otel_exporter\" invalid value:2"),
        ("batch_size 0;", "\"batch_size\" directive of \"otel_exporter\" invalid value:2"),
        ("batch_count x;", "\"batch_count\" directive of \"otel_exporter\" invalid value:2"),
        ("header 'a b' c;", "\"header\" directive of \"otel_exporter\" has invalid header name:2"),
        ("header Host c;", "\"header\" directive of \"otel_exporter\" has invalid header name:2"),
        (
            "header a '\u{7f}';",
            "\"header\" directive of \"otel_exporter\" has invalid header value:2",
        ),
        ("endpiont c:1;", "unknown directive \"endpiont\" in \"otel_exporter\":2"),
    ];
    for (lines, message) in table {
        assert_eq!(exporter(lines), message, "{lines}");
    }
    assert_eq!(
        refusal("otel_exporter { endpoint c:1; } otel_exporter { endpoint c:1; }"),
        "\"otel_exporter\" directive is duplicate:1"
    );
    assert_eq!(refusal("otel_trace on; server { }"), "\"otel_exporter\" block is missing:1");
    let with = |line: &str| refusal(&format!("otel_exporter {{ endpoint c:1; }} {line}"));
    assert_eq!(with("otel_trace yes;"), "invalid parameter \"yes\":1");
    assert_eq!(with("otel_trace off slow=x;"), "invalid parameter \"slow=x\":1");
    assert_eq!(with("otel_trace_context some;"), "invalid value \"some\":1");
}
