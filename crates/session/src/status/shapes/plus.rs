//! The objects of NGINX Plus's API, version 9.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ::upstream::resolver::ResolverCounters;
use ::upstream::{Group, GroupServer, ServerCounters};
use conf::Subsystem;
use metrics::tree::{Items, NamedItems, StatusTree, TreeSource, Visitor, list, object};
use metrics::{BOUNDS, CounterTotals, Histogram, Metric, StatusCounters, WorkerCounters};
use net::clock;
use net::tls::HandshakeFault;

use super::{Shape, caches, counted_workers, mean_ms, slabs, time};
use crate::status::{
    Program, ProgramFacts, ShownLimit, ShownZone, SubsystemStatus, ZoneCounters, ZoneCounts,
    published,
};

/// All objects. `address`: that of the server which answers.
pub fn plus(address: &[u8]) -> StatusTree {
    let mut tree = StatusTree::default();
    let address: Box<[u8]> = address.into();
    tree.fields(&[b"nginx"], move |out: &mut dyn Visitor| nginx(out, &address));
    tree.fields(&[b"processes"], |out: &mut dyn Visitor| {
        let totals = Program::metric().totals();
        out.number(b"respawned", totals.get().lost_processes().get());
    });
    tree.fields(&[b"connections"], |out: &mut dyn Visitor| {
        let all = CounterTotals::now();
        out.number(b"accepted", all.accepts);
        out.number(b"dropped", all.accepts - all.handled);
        out.number(b"active", all.active.saturating_sub(all.waiting));
        out.number(b"idle", all.waiting);
    });
    tree.add(&[b"slabs"], slabs());
    tree.fields(&[b"http", b"requests"], |out: &mut dyn Visitor| {
        let all = CounterTotals::now();
        out.number(b"total", all.requests);
        out.number(b"current", all.reading + all.writing);
    });
    let http = published(Subsystem::Http);
    tree.add(&[b"http", b"server_zones"], zones(&http.servers, server_zone));
    tree.add(&[b"http", b"location_zones"], zones(&http.locations, location_zone));
    tree.add(&[b"http", b"caches"], caches(&http, Shape::default()));
    tree.add(&[b"http", b"limit_conns"], limits(&http, "limit_conn_zone"));
    tree.add(&[b"http", b"limit_reqs"], limits(&http, "limit_req_zone"));
    tree.add(&[b"http", b"keyvals"], keyvals(&http));
    groups(&mut tree, b"http", &http);
    let stream = published(Subsystem::Stream);
    tree.add(&[b"stream", b"server_zones"], zones(&stream.servers, stream_zone));
    tree.add(&[b"stream", b"limit_conns"], limits(&stream, "limit_conn_zone"));
    tree.add(&[b"stream", b"keyvals"], keyvals(&stream));
    groups(&mut tree, b"stream", &stream);
    tree.add(&[b"resolvers"], resolvers(&http, &stream));
    tree.fields(&[b"ssl"], |out: &mut dyn Visitor| {
        let totals = all_tls();
        out.number(b"handshakes", totals.0);
        out.number(b"handshakes_failed", totals.1);
        out.number(b"session_reuses", totals.2);
    });
    tree.add(&[b"workers"], Items::List(workers()));
    tree
}

/// The content of each table.
fn keyvals(status: &SubsystemStatus) -> Items {
    let named = status.keyvals.iter().map(|zone| {
        let table = zone.table();
        let source = move |out: &mut dyn Visitor| {
            let entries = table.live_entries(clock::monotonic_ms());
            entries.for_each(|entry| out.text(&entry.key, &entry.value));
        };
        let source: Arc<dyn TreeSource> = Arc::new(source);
        (zone.name.clone(), source)
    });
    Items::Named(named.collect())
}

fn resolvers(http: &SubsystemStatus, stream: &SubsystemStatus) -> Items {
    let mut named = NamedItems::new();
    for (name, metric) in http.resolvers.iter().chain(&stream.resolvers) {
        let metric = metric.clone();
        let source = move |out: &mut dyn Visitor| resolver(out, &metric.totals().get());
        // A zone of both subsystems is one.
        if !named.iter().any(|(known, _)| known == name) {
            named.push((name.clone(), Arc::new(source)));
        }
    }
    Items::Named(named)
}

fn resolver(out: &mut dyn Visitor, all: &ResolverCounters<'_>) {
    object(out, b"requests", |out| {
        out.number(b"name", all.names().get());
        out.number(b"srv", all.services().get());
        out.number(b"addr", all.addresses().get());
    });
    object(out, b"responses", |out| {
        out.number(b"noerror", all.success().get());
        out.number(b"formerr", all.format_error().get());
        out.number(b"servfail", all.server_failure().get());
        out.number(b"nxdomain", all.not_found().get());
        out.number(b"notimp", all.unimplemented().get());
        out.number(b"refused", all.refused().get());
        out.number(b"timedout", all.timed_out().get());
        out.number(b"unknown", all.other().get());
    });
}

fn nginx(out: &mut dyn Visitor, address: &[u8]) {
    let facts = ProgramFacts::get();
    let loaded = Program::metric().totals().get().loaded().get();
    out.text(b"version", facts.version.as_bytes());
    out.text(b"build", facts.build.as_bytes());
    out.text(b"address", address);
    out.number(b"generation", loaded);
    time(out, b"load_timestamp", facts.loaded_ms.load(Relaxed), Shape::default());
    time(out, b"timestamp", clock::unix_ms(), Shape::default());
    out.number(b"pid", std::process::id().into());
    out.number(b"ppid", u64::from(std::os::unix::process::parent_id()));
}

/// Handshakes, those that failed, and those that resumed a session, of all servers with a zone.
fn all_tls() -> (u64, u64, u64) {
    let all = [published(Subsystem::Http), published(Subsystem::Stream)];
    let zones = all.iter().flat_map(|status| &status.servers).flat_map(ShownZone::all);
    zones.fold((0, 0, 0), |(done, failed, reuses), (_, zone)| {
        let totals = zone.totals();
        let zone = totals.get();
        let fails: u64 = zone.handshakes_failed().iter().sum();
        (done + zone.handshakes().get(), failed + fails, reuses + zone.reuses().get())
    })
}

fn workers() -> Vec<Arc<dyn TreeSource>> {
    let source = |worker: WorkerCounters<'static>| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| {
            out.number(b"id", worker.worker().get());
            out.number(b"pid", worker.process().get());
            object(out, b"connections", |out| {
                let (open, waiting) = (worker.connections().now(), worker.waiting().now());
                out.number(b"accepted", worker.connections().total() + worker.refused().get());
                out.number(b"dropped", worker.refused().get());
                out.number(b"active", open.saturating_sub(waiting));
                out.number(b"idle", waiting);
            });
            object(out, b"http", |out| {
                object(out, b"requests", |out| {
                    out.number(b"total", worker.requests().total());
                    out.number(b"current", worker.requests().now());
                });
            });
        })
    };
    counted_workers().into_iter().map(source).collect()
}

type PlusZone = fn(&mut dyn Visitor, &ZoneCounters<'_>);

fn zones(shown: &[ShownZone], fields: PlusZone) -> Items {
    let source = |zone: Metric<ZoneCounts>| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| fields(out, &zone.totals().get()))
    };
    let all = shown.iter().flat_map(ShownZone::all);
    Items::Named(all.map(|(name, zone)| (name, source(zone))).collect())
}

fn server_zone(out: &mut dyn Visitor, all: &ZoneCounters<'_>) {
    out.number(b"processing", all.sessions().now());
    location_zone(out, all);
    tls(out, all);
}

fn location_zone(out: &mut dyn Visitor, all: &ZoneCounters<'_>) {
    out.number(b"requests", all.sessions().total());
    responses(out, all.statuses());
    out.number(b"discarded", all.discarded().get());
    out.number(b"received", all.received().get());
    out.number(b"sent", all.sent().get());
}

fn stream_zone(out: &mut dyn Visitor, all: &ZoneCounters<'_>) {
    out.number(b"processing", all.sessions().now());
    out.number(b"connections", all.sessions().total());
    object(out, b"sessions", |out| {
        let class = |class: u16| {
            let of_class = |(status, count)| if status / 100 == class { count } else { 0 };
            all.statuses().iter().map(of_class).sum::<u64>()
        };
        for (name, class_of) in [(&b"2xx"[..], 2), (b"4xx", 4), (b"5xx", 5)] {
            out.number(name, class(class_of));
        }
        out.number(b"total", all.statuses().iter().map(|(_, count)| count).sum());
    });
    out.number(b"discarded", all.discarded().get());
    out.number(b"received", all.received().get());
    out.number(b"sent", all.sent().get());
    tls(out, all);
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
            if has_delays {
                out.number(b"delayed", all.delayed().get());
            }
            out.number(b"rejected", all.rejected().get() + all.exhausted().get());
            if has_delays {
                out.number(b"delayed_dry_run", all.delayed_dry_run().get());
            }
            out.number(b"rejected_dry_run", all.rejected_dry_run().get());
        })
    };
    Items::Named(shown.map(|limit| (limit.name.clone(), source(limit))).collect())
}

fn tls(out: &mut dyn Visitor, all: &ZoneCounters<'_>) {
    let failed: u64 = all.handshakes_failed().iter().sum();
    if all.handshakes().get() + failed > 0 {
        object(out, b"ssl", |out| {
            out.number(b"handshakes", all.handshakes().get());
            out.number(b"handshakes_failed", failed);
            out.number(b"session_reuses", all.reuses().get());
            let by = |fault| all.handshakes_failed_by(fault);
            out.number(b"no_common_protocol", by(HandshakeFault::NoCommonVersion));
            out.number(b"no_common_cipher", by(HandshakeFault::NoCommonCipher));
            out.number(b"handshake_timeout", by(HandshakeFault::TimedOut));
            out.number(b"peer_rejected_cert", by(HandshakeFault::CertificateRejected));
        });
    }
}

fn responses(out: &mut dyn Visitor, statuses: StatusCounters<'_>) {
    object(out, b"responses", |out| {
        let mut classes = [0; 6];
        let mut total = 0;
        for (status, count) in statuses.iter() {
            total += count;
            classes[usize::from(status / 100).min(5)] += count;
        }
        for (class, name) in [b"1xx", b"2xx", b"3xx", b"4xx", b"5xx"].into_iter().enumerate() {
            out.number(name, classes[class + 1]);
        }
        object(out, b"codes", |out| {
            for (status, count) in statuses.iter().filter(|(status, _)| *status > 0) {
                out.number(status.to_string().as_bytes(), count);
            }
        });
        out.number(b"total", total);
    });
}

fn groups(tree: &mut StatusTree, subsystem: &'static [u8], status: &SubsystemStatus) {
    let is_http = subsystem == b"http";
    if status.groups.is_empty() {
        tree.add(&[subsystem, b"upstreams"], Items::Named(Vec::new()));
    }
    for group in &status.groups {
        let (name, shown) = (group.name(), group.clone());
        let peers = group.overview().into_iter().map(|shown| -> Arc<dyn TreeSource> {
            Arc::new(move |out: &mut dyn Visitor| peer(out, &shown, is_http))
        });
        tree.add(&[subsystem, b"upstreams", name, b"peers"], Items::List(peers.collect()));
        let fields = move |out: &mut dyn Visitor| group_fields(out, &shown, is_http);
        tree.fields(&[subsystem, b"upstreams", name], fields);
    }
}

fn group_fields(out: &mut dyn Visitor, group: &Group, is_http: bool) {
    let totals = group.counters().totals();
    let all = totals.get();
    if is_http {
        out.number(b"keepalive", all.idle().get());
    }
    out.number(b"zombies", 0);
    out.text(b"zone", group.name());
    if let Some(limit) = group.limit() {
        object(out, b"queue", |out| {
            out.number(b"size", all.queued().now());
            out.number(b"max_size", limit.queue_max().map_or(0, u64::from));
            out.number(b"overflows", all.overflows().get());
        });
    }
}

fn peer(out: &mut dyn Visitor, shown: &GroupServer, is_http: bool) {
    let server = &shown.server;
    let totals = server.counters().totals();
    let all = totals.get();
    out.number(b"id", shown.id);
    out.text(b"server", server.name());
    out.text(b"name", server.text());
    out.flag(b"backup", shown.is_backup);
    out.number(b"weight", server.weight().into());
    out.text(b"state", server.condition(clock::now_ms()).name().as_bytes());
    out.number(b"active", server.in_progress().into());
    if server.max_conns() > 0 {
        out.number(b"max_conns", server.max_conns().into());
    }
    out.number(if is_http { b"requests" } else { b"connections" }, all.chosen().get());
    if is_http {
        responses(out, all.statuses());
    }
    out.number(b"sent", all.sent().get());
    out.number(b"received", all.received().get());
    out.number(b"fails", all.fails().get());
    out.number(b"unavail", all.unavailable().get());
    checks(out, &all);
    let down_ms = server.down_for_ms(clock::now_ms());
    out.number(b"downtime", all.downtime_ms().get() + down_ms.unwrap_or(0));
    if let Some(down_ms) = down_ms {
        let since_ms = clock::unix_ms().saturating_sub(down_ms);
        time(out, b"downstart", since_ms, Shape::default());
    }
    if all.chosen_ms().get() > 0 {
        time(out, b"selected", all.chosen_ms().get(), Shape::default());
    }
    times(out, &all, is_http);
}

fn checks(out: &mut dyn Visitor, all: &ServerCounters<'_>) {
    object(out, b"health_checks", |out| {
        out.number(b"checks", all.checks().get());
        out.number(b"fails", all.check_fails().get());
        out.number(b"unhealthy", all.unhealthy().get());
        if all.checks().get() > 0 {
            out.flag(b"last_passed", all.check_passed().get() != 0);
        }
    });
}

fn times(out: &mut dyn Visitor, all: &ServerCounters<'_>, is_http: bool) {
    if all.response().count() == 0 {
        return;
    }
    if is_http {
        out.number(b"header_time", mean_ms(all.header()));
    } else {
        out.number(b"connect_time", mean_ms(all.connect()));
        out.number(b"first_byte_time", mean_ms(all.header()));
    }
    out.number(b"response_time", mean_ms(all.response()));
    list(out, b"response_time_hist", |out| buckets(out, all.response()));
}

/// Counts up to each bound that Plus has, in milliseconds, and of all.
fn buckets(out: &mut dyn Visitor, times: Histogram<'_>) {
    /// Plus's bounds in nanoseconds: all are among ours.
    const FIRST: u64 = 5_000_000;
    const LAST: u64 = 10_000_000_000;
    let mut so_far = 0;
    let counts = times.counts();
    for (bound, count) in BOUNDS.iter().zip(counts) {
        so_far += count;
        if (FIRST..=LAST).contains(bound) {
            bucket(out, &(bound / 1_000_000).to_string(), so_far);
        }
    }
    bucket(out, "+Inf", counts.iter().sum());
}

fn bucket(out: &mut dyn Visitor, bound: &str, count: u64) {
    object(out, b"", |out| {
        out.text(b"le", bound.as_bytes());
        out.number(b"count", count);
    });
}
