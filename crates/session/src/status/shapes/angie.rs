//! Angie's tree `/status/`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ::upstream::resolver::{ResolverCounters, ResolverCounts};
use ::upstream::{Group, GroupServer, ServerCondition, ServerCounters};
use conf::Subsystem;
use metrics::tree::{Items, NamedItems, StatusTree, TreeSource, Visitor, object};
use metrics::{CounterTotals, Metric, StatusCounters};
use net::clock;
use net::tls::HandshakeFault;

use super::{Shape, caches, histogram, mean_ms, slabs, status_text, time};
use crate::status::{
    Program, ProgramFacts, ShownLimit, ShownZone, SubsystemStatus, ZoneCounters, ZoneCounts,
    published,
};

/// Angie's tree. `address`: that of the server which answers.
pub fn angie(address: &[u8], shape: Shape) -> StatusTree {
    let mut tree = StatusTree::default();
    let address: Box<[u8]> = address.into();
    tree.fields(&[b"angie"], move |out: &mut dyn Visitor| program(out, &address, shape));
    tree.fields(&[b"connections"], move |out: &mut dyn Visitor| connections(out, shape));
    tree.add(&[b"slabs"], slabs());
    http(&mut tree, &published(Subsystem::Http), shape);
    let own = published(Subsystem::Stream);
    if own.is_configured {
        stream(&mut tree, &own, shape);
    }
    tree.add(&[b"resolvers"], resolvers());
    tree
}

fn resolvers() -> Items {
    let all = [published(Subsystem::Http), published(Subsystem::Stream)];
    let source = |metric: &Metric<ResolverCounts>| -> Arc<dyn TreeSource> {
        let metric = metric.clone();
        Arc::new(move |out: &mut dyn Visitor| resolver(out, &metric.totals().get()))
    };
    let mut named = NamedItems::new();
    for (name, metric) in all.iter().flat_map(|status| &status.resolvers) {
        // A zone of both subsystems is one.
        if !named.iter().any(|(known, _)| known == name) {
            named.push((name.clone(), source(metric)));
        }
    }
    Items::Named(named)
}

fn resolver(out: &mut dyn Visitor, all: &ResolverCounters<'_>) {
    object(out, b"queries", |out| {
        out.number(b"name", all.names().get());
        out.number(b"srv", all.services().get());
        out.number(b"addr", all.addresses().get());
    });
    object(out, b"sent", |out| {
        out.number(b"a", all.sent_a().get());
        out.number(b"aaaa", all.sent_aaaa().get());
        out.number(b"srv", all.sent_srv().get());
        out.number(b"ptr", all.sent_ptr().get());
    });
    object(out, b"responses", |out| {
        out.number(b"success", all.success().get());
        out.number(b"timedout", all.timed_out().get());
        out.number(b"format_error", all.format_error().get());
        out.number(b"server_failure", all.server_failure().get());
        out.number(b"not_found", all.not_found().get());
        out.number(b"unimplemented", all.unimplemented().get());
        out.number(b"refused", all.refused().get());
        out.number(b"other", all.other().get());
    });
}

fn program(out: &mut dyn Visitor, address: &[u8], shape: Shape) {
    let facts = ProgramFacts::get();
    out.text(b"version", facts.version.as_bytes());
    if shape.is_extended {
        out.text(b"build", facts.build.as_bytes());
    }
    if let Some(built_ms) = facts.built_ms {
        time(out, b"build_time", built_ms, shape);
    }
    out.text(b"address", address);
    out.number(b"generation", Program::metric().totals().get().loaded().get());
    time(out, b"load_time", facts.loaded_ms.load(Relaxed), shape);
}

fn connections(out: &mut dyn Visitor, shape: Shape) {
    let all = CounterTotals::now();
    out.number(b"accepted", all.accepts);
    out.number(b"dropped", all.accepts - all.handled);
    out.number(b"active", all.active.saturating_sub(all.waiting));
    out.number(b"idle", all.waiting);
    if shape.is_extended {
        out.number(b"open", all.active);
        out.number(b"handled", all.handled);
        out.number(b"reading", all.reading);
        out.number(b"writing", all.writing);
    }
}

fn http(tree: &mut StatusTree, status: &SubsystemStatus, shape: Shape) {
    if shape.is_extended {
        tree.fields(&[b"http", b"requests"], |out: &mut dyn Visitor| {
            let all = CounterTotals::now();
            out.number(b"total", all.requests);
            out.number(b"current", all.reading + all.writing);
        });
    }
    tree.add(&[b"http", b"server_zones"], zones(&status.servers, shape, server_zone));
    tree.add(&[b"http", b"location_zones"], zones(&status.locations, shape, location_zone));
    tree.add(&[b"http", b"caches"], caches(status, shape));
    tree.add(&[b"http", b"limit_conns"], limits(status, "limit_conn_zone"));
    tree.add(&[b"http", b"limit_reqs"], limits(status, "limit_req_zone"));
    groups(tree, b"http", status, shape);
}

fn stream(tree: &mut StatusTree, status: &SubsystemStatus, shape: Shape) {
    tree.add(&[b"stream", b"server_zones"], zones(&status.servers, shape, stream_zone));
    tree.add(&[b"stream", b"limit_conns"], limits(status, "limit_conn_zone"));
    groups(tree, b"stream", status, shape);
}

/// Tells a zone; the flag says whether it has TLS.
type AngieZone = fn(&mut dyn Visitor, &Metric<ZoneCounts>, bool, Shape);

fn zones(shown: &[ShownZone], shape: Shape, fields: AngieZone) -> Items {
    let source = |zone: Metric<ZoneCounts>, has_tls: bool| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| fields(out, &zone, has_tls, shape))
    };
    let of = |shown: &ShownZone| {
        let has_tls = shown.has_tls;
        shown.all().into_iter().map(move |(name, zone)| (name, source(zone, has_tls)))
    };
    Items::Named(shown.iter().flat_map(of).collect())
}

fn server_zone(out: &mut dyn Visitor, zone: &Metric<ZoneCounts>, has_tls: bool, shape: Shape) {
    let totals = zone.totals();
    let all = totals.get();
    tls(out, &all, has_tls, shape);
    object(out, b"requests", |out| {
        out.number(b"total", all.sessions().total());
        out.number(b"processing", all.sessions().now());
        out.number(b"discarded", all.discarded().get());
    });
    responses(out, all.statuses());
    data(out, all.sent().get(), all.received().get());
    zone_extras(out, &all, shape);
}

fn location_zone(out: &mut dyn Visitor, zone: &Metric<ZoneCounts>, _: bool, shape: Shape) {
    let totals = zone.totals();
    let all = totals.get();
    object(out, b"requests", |out| {
        out.number(b"total", all.sessions().total());
        out.number(b"discarded", all.discarded().get());
    });
    responses(out, all.statuses());
    data(out, all.sent().get(), all.received().get());
    zone_extras(out, &all, shape);
}

fn stream_zone(out: &mut dyn Visitor, zone: &Metric<ZoneCounts>, has_tls: bool, shape: Shape) {
    let totals = zone.totals();
    let all = totals.get();
    tls(out, &all, has_tls, shape);
    object(out, b"connections", |out| {
        out.number(b"total", all.sessions().total());
        out.number(b"processing", all.sessions().now());
        out.number(b"discarded", all.discarded().get());
        out.number(b"passed", all.passed().get());
    });
    object(out, b"sessions", |out| {
        let count = |wanted: u16| {
            let mut found = all.statuses().iter().filter(|(status, _)| *status == wanted);
            found.next().map_or(0, |(_, count)| count)
        };
        out.number(b"success", count(200));
        out.number(b"invalid", count(400));
        out.number(b"forbidden", count(403));
        out.number(b"internal_error", count(500));
        out.number(b"bad_gateway", count(502));
        out.number(b"service_unavailable", count(503));
    });
    data(out, all.sent().get(), all.received().get());
    zone_extras(out, &all, shape);
}

fn limits(status: &SubsystemStatus, directive: &'static str) -> Items {
    let shown = status.limits.iter().filter(|limit| limit.directive == directive);
    let source = |limit: &ShownLimit| -> Arc<dyn TreeSource> {
        let (metric, has_delays) = (limit.metric.clone(), directive == "limit_req_zone");
        Arc::new(move |out: &mut dyn Visitor| {
            let totals = metric.totals();
            let all = totals.get();
            let delayed = all.delayed().get() + all.delayed_dry_run().get();
            out.number(b"passed", all.passed().get().saturating_sub(delayed));
            out.number(b"skipped", all.skipped().get());
            if has_delays {
                out.number(b"delayed", delayed);
            }
            out.number(b"rejected", all.rejected().get() + all.rejected_dry_run().get());
            out.number(b"exhausted", all.exhausted().get());
        })
    };
    Items::Named(shown.map(|limit| (limit.name.clone(), source(limit))).collect())
}

fn tls(out: &mut dyn Visitor, all: &ZoneCounters<'_>, has_tls: bool, shape: Shape) {
    if has_tls {
        object(out, b"ssl", |out| {
            out.number(b"handshaked", all.handshakes().get());
            out.number(b"reuses", all.reuses().get());
            out.number(b"timedout", all.handshakes_failed_by(HandshakeFault::TimedOut));
            out.number(b"failed", all.handshakes_failed_in_time());
            if shape.is_extended {
                object(out, b"reasons", |out| faults(out, all));
            }
        });
    }
}

/// Handshakes that failed, by reason.
fn faults(out: &mut dyn Visitor, all: &ZoneCounters<'_>) {
    for fault in HandshakeFault::ALL {
        let count = all.handshakes_failed_by(fault);
        if count > 0 {
            out.number(fault.name().as_bytes(), count);
        }
    }
}

fn zone_extras(out: &mut dyn Visitor, all: &ZoneCounters<'_>, shape: Shape) {
    if shape.is_extended {
        histogram(out, b"time", all.time());
        if all.last_ms().get() > 0 {
            out.number(b"last_at", all.last_ms().get());
        }
        out.number(b"overflows", all.overflows().get());
    }
}

fn responses(out: &mut dyn Visitor, statuses: StatusCounters<'_>) {
    object(out, b"responses", |out| {
        statuses.iter().for_each(|(status, count)| out.number(&status_text(status), count));
    });
}

fn data(out: &mut dyn Visitor, sent: u64, received: u64) {
    object(out, b"data", |out| {
        out.number(b"sent", sent);
        out.number(b"received", received);
    });
}

fn groups(tree: &mut StatusTree, subsystem: &'static [u8], status: &SubsystemStatus, shape: Shape) {
    let is_http = subsystem == b"http";
    if status.groups.is_empty() {
        tree.add(&[subsystem, b"upstreams"], Items::Named(Vec::new()));
    }
    for group in &status.groups {
        let name = group.name();
        let shown = group.clone();
        let fields = move |out: &mut dyn Visitor| group_fields(out, &shown, is_http, shape);
        tree.fields(&[subsystem, b"upstreams", name], fields);
        tree.add(&[subsystem, b"upstreams", name, b"peers"], peers(group, is_http, shape));
    }
}

fn group_fields(out: &mut dyn Visitor, group: &Group, is_http: bool, shape: Shape) {
    let totals = group.counters().totals();
    let all = totals.get();
    if is_http {
        out.number(b"keepalive", all.idle().get());
    }
    let Some(limit) = group.limit() else { return };
    object(out, b"queue", |out| {
        out.number(b"queued", all.queued().total());
        out.number(b"waiting", all.queued().now());
        out.number(b"timedout", all.timed_out().get());
        out.number(b"overflows", all.overflows().get());
        if shape.is_extended {
            out.number(b"length", all.queued().now());
            if let Some(most) = limit.queue_max() {
                out.number(b"max_length", most.into());
            }
            histogram(out, b"time", all.queue());
        }
    });
}

fn peers(group: &Arc<Group>, is_http: bool, shape: Shape) -> Items {
    let mut named = NamedItems::new();
    for shown in group.overview() {
        let name = shown.server.name();
        let twins = named.iter().filter(|(known, _)| is_twin(known, name)).count();
        let name = match twins {
            0 => name.into(),
            twins => [name, b"#", (twins + 1).to_string().as_bytes()].concat().into(),
        };
        named
            .push((name, Arc::new(move |out: &mut dyn Visitor| peer(out, &shown, is_http, shape))));
    }
    Items::Named(named)
}

fn is_twin(known: &[u8], name: &[u8]) -> bool {
    known.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest[0] == b'#')
}

fn peer(out: &mut dyn Visitor, shown: &GroupServer, is_http: bool, shape: Shape) {
    let server = &shown.server;
    let totals = server.counters().totals();
    let all = totals.get();
    let condition = server.condition(clock::now_ms());
    out.text(b"server", server.text());
    if shape.is_extended {
        out.number(b"id", shown.id);
    }
    out.flag(b"backup", shown.is_backup);
    out.number(b"weight", server.weight().into());
    out.text(b"state", condition.angie().as_bytes());
    if shape.is_extended {
        extended_state(out, shown, condition);
    }
    object(out, b"selected", |out| {
        out.number(b"current", server.in_progress().into());
        out.number(b"total", all.chosen().get());
        if all.chosen_ms().get() > 0 {
            time(out, b"last", all.chosen_ms().get(), shape);
        }
    });
    if server.max_conns() > 0 {
        out.number(b"max_conns", server.max_conns().into());
    }
    if let Some(limit) = server.limit().filter(|_| shape.is_extended) {
        out.number(b"limit", limit.into());
    }
    if is_http {
        responses(out, all.statuses());
    }
    data(out, all.sent().get(), all.received().get());
    object(out, b"health", |out| health(out, shown, &all, is_http, shape));
    out.text(b"sid", server.sid());
    if shape.is_extended {
        object(out, b"connections", |out| {
            out.number(b"opened", all.opened().get());
            out.number(b"reused", all.reused().get());
        });
        out.number(b"retries", all.retries().get());
        histogram(out, b"connect_time", all.connect());
        histogram(out, b"header_time", all.header());
        histogram(out, b"response_time", all.response());
        histogram(out, b"queue_time", all.queue());
    }
}

fn extended_state(out: &mut dyn Visitor, shown: &GroupServer, condition: ServerCondition) {
    out.text(b"condition", condition.name().as_bytes());
    if let Some(why) = shown.server.why(condition) {
        out.text(b"why", why.as_bytes());
    }
    if let Some(down_ms) = shown.server.down_for_ms(clock::now_ms()) {
        out.number(b"since_at", clock::unix_ms().saturating_sub(down_ms));
    }
}

fn health(
    out: &mut dyn Visitor,
    shown: &GroupServer,
    all: &ServerCounters<'_>,
    is_http: bool,
    shape: Shape,
) {
    let down_ms = shown.server.down_for_ms(clock::now_ms());
    out.number(b"fails", all.fails().get());
    out.number(b"unavailable", all.unavailable().get());
    out.number(b"downtime", all.downtime_ms().get() + down_ms.unwrap_or(0));
    if let Some(down_ms) = down_ms {
        time(out, b"downstart", clock::unix_ms().saturating_sub(down_ms), shape);
    }
    if is_http {
        out.number(b"header_time", mean_ms(all.header()));
        out.number(b"response_time", mean_ms(all.response()));
    } else {
        out.number(b"connect_time", mean_ms(all.connect()));
        out.number(b"first_byte_time", mean_ms(all.header()));
        out.number(b"last_byte_time", mean_ms(all.response()));
    }
    if all.checks().get() > 0 {
        object(out, b"probes", |out| {
            out.number(b"count", all.checks().get());
            out.number(b"fails", all.check_fails().get());
            time(out, b"last", all.checked_ms().get(), shape);
            if shape.is_extended {
                out.flag(b"last_ok", all.check_passed().get() != 0);
                out.float(b"last_duration", all.check_us().get() as f64 / 1000.0);
            }
        });
    }
}
