//! What the screen shows, computed from two snapshots.

use serde_json::Value;

use super::growth::{Growth, TopSnapshot, TopTimes, at, float, members, number, text};
use super::rows::{CacheRow, GroupRow, ServerRow, SiteKind, SiteRow, SlowRow, share};
use super::warnings;

pub(super) struct TopFigures {
    /// Version, address, generation.
    pub(super) title: Vec<String>,
    /// The server's clock in milliseconds since 1970.
    pub(super) now_ms: f64,
    pub(super) started_ms: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) in_progress: Option<f64>,
    /// 5xx among all replies of all sites.
    pub(super) error_share: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) connections: Option<f64>,
    pub(super) idle: Option<f64>,
    /// That of the busiest worker.
    pub(super) busy: Option<f64>,
    /// The requests that wait for an upstream server; `None`: no group has a queue.
    pub(super) queued: Option<f64>,
    pub(super) sites: Vec<SiteRow>,
    pub(super) groups: Vec<GroupRow>,
    pub(super) caches: Vec<CacheRow>,
    pub(super) slow: Vec<SlowRow>,
    pub(super) warnings: Vec<String>,
}

impl TopFigures {
    pub(super) fn new(now: &TopSnapshot, then: Option<&TopSnapshot>) -> Self {
        let growth = Growth::new(now, then);
        let tree = &now.tree;
        let sites = sites(growth);
        let groups = groups(growth);
        let is_server = |site: &&SiteRow| site.kind == SiteKind::Server;
        let (mut times, mut classes) = (TopTimes::default(), [0.0; 6]);
        for site in sites.iter().filter(is_server) {
            times.add(&site.times);
            classes.iter_mut().zip(site.classes).for_each(|(sum, count)| *sum += count);
        }
        let queues = groups.iter().filter_map(|group| group.queue);
        let now_ms = now.at_ms();
        Self {
            title: title(tree),
            now_ms,
            started_ms: float(tree, &["weir", "started_at"]),
            rate: growth.rate(&["http", "requests", "total"]),
            in_progress: float(tree, &["http", "requests", "current"]),
            error_share: share(classes),
            p50: times.quantile(0.5),
            p99: times.quantile(0.99),
            connections: float(tree, &["connections", "active"]),
            idle: float(tree, &["connections", "idle"]),
            busy: busy(growth),
            queued: queues.map(|(length, _)| length).reduce(|sum, length| sum + length),
            caches: caches(growth),
            slow: slow(tree),
            warnings: warnings::find(&sites, &groups, tree, now_ms),
            sites,
            groups,
        }
    }
}

fn title(tree: &Value) -> Vec<String> {
    let of = ["weir", "angie", "nginx"].into_iter().find(|name| tree.get(name).is_some());
    let of = of.unwrap_or("weir");
    let generation = float(tree, &[of, "generation"]).map(|n| format!("generation {n}"));
    // Weir's address is where Angie's is.
    let place = if of == "weir" { "angie" } else { of };
    let words = [text(tree, &[of, "version"]), text(tree, &[place, "address"])];
    let words = words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned);
    let name = match of {
        "weir" => "Weir",
        "angie" => "Angie",
        _ => "NGINX Plus",
    };
    [name.to_owned()].into_iter().chain(words).chain(generation).collect()
}

/// What a cache has done for a request: the first ones, that it has answered it itself.
const OUTCOMES: [&str; 7] =
    ["hit", "stale", "updating", "revalidated", "miss", "expired", "bypass"];
const FROM_CACHE: usize = 4;

fn caches(growth: Growth<'_>) -> Vec<CacheRow> {
    let path = ["http", "caches"];
    let names = members(growth.now, &path).map(|(name, _)| name);
    names.map(|name| cache(name, growth.within(&path).within(&[name]))).collect()
}

fn cache(name: &str, zone: Growth<'_>) -> CacheRow {
    let sum = |outcomes: &[&str], what: &str| {
        outcomes.iter().filter_map(|outcome| zone.of(&[outcome, what])).reduce(|a, b| a + b)
    };
    let per_second = |all: Option<f64>| all.map(|all| all / zone.seconds);
    let (from_cache, all) = (&OUTCOMES[..FROM_CACHE], sum(&OUTCOMES, "responses"));
    let hits = sum(from_cache, "responses").zip(all.filter(|all| *all > 0.0));
    CacheRow {
        name: name.to_owned(),
        rate: per_second(all),
        hits: hits.map(|(hits, all)| hits / all),
        sent: per_second(sum(from_cache, "bytes")),
        stored: per_second(sum(&OUTCOMES, "responses_written")),
        size: number(zone.now, &["size"]),
        size_max: number(zone.now, &["max_size"]),
        entries: float(zone.now, &["entries"]),
        entries_max: number(zone.now, &["max_entries"]),
        purge_rules: float(zone.now, &["purge_rules"]),
        is_cold: at(zone.now, &["cold"]).and_then(Value::as_bool).unwrap_or(false),
    }
}

fn sites(growth: Growth<'_>) -> Vec<SiteRow> {
    let kinds = [
        (SiteKind::Server, "http", "server_zones"),
        (SiteKind::Location, "http", "location_zones"),
        (SiteKind::Stream, "stream", "server_zones"),
    ];
    let zones = kinds.into_iter().flat_map(|(kind, of, zones)| {
        let names = members(growth.now, &[of, zones]);
        names.map(move |(name, _)| site(kind, name, growth.within(&[of, zones, name])))
    });
    zones.collect()
}

fn site(kind: SiteKind, name: &str, zone: Growth<'_>) -> SiteRow {
    let counted = if kind == SiteKind::Stream { "connections" } else { "requests" };
    SiteRow {
        name: name.to_owned(),
        kind,
        rate: zone.rate(&[counted, "total"]),
        in_progress: float(zone.now, &[counted, "processing"]),
        classes: zone.classes(&["responses"]),
        received: zone.rate(&["data", "received"]),
        sent: zone.rate(&["data", "sent"]),
        times: zone.times(&["time"]),
    }
}

fn groups(growth: Growth<'_>) -> Vec<GroupRow> {
    let of = ["http", "stream"].into_iter();
    let names = of.flat_map(|of| members(growth.now, &[of, "upstreams"]).map(move |one| (of, one)));
    let groups = names.map(|(of, (name, group))| GroupRow {
        name: name.to_owned(),
        servers: members(group, &["peers"])
            .map(|(server, _)| {
                let path = [of, "upstreams", name, "peers", server];
                self::server(server, growth.within(&path))
            })
            .collect(),
        queue: at(group, &["queue"])
            .map(|queue| (number(queue, &["length"]), number(queue, &["max_length"]))),
    });
    groups.collect()
}

fn server(name: &str, peer: Growth<'_>) -> ServerRow {
    let opened = peer.of(&["connections", "opened"]).unwrap_or(0.0);
    let reused = peer.of(&["connections", "reused"]).unwrap_or(0.0);
    ServerRow {
        name: name.to_owned(),
        state: text(peer.now, &["state"]).to_owned(),
        why: text(peer.now, &["why"]).to_owned(),
        since_ms: float(peer.now, &["since_at"]),
        rate: peer.rate(&["selected", "total"]),
        active: number(peer.now, &["selected", "current"]),
        limit: number(peer.now, &["limit"]),
        classes: peer.classes(&["responses"]),
        fails: number(peer.now, &["health", "fails"]),
        times: peer.times(&["response_time"]),
        reuse: (opened + reused > 0.0).then(|| reused / (opened + reused)),
    }
}

/// The largest share of a worker. Workers are in a list, so they are found by their numbers.
fn busy(growth: Growth<'_>) -> Option<f64> {
    let workers = at(growth.now, &["workers"])?.as_array()?;
    let before = growth.within(&["workers"]).earlier()?.as_array()?;
    let id = |worker: &Value| (worker.get("id").cloned(), worker.get("pid").cloned());
    let shares = workers.iter().filter_map(|worker| {
        let old = before.iter().find(|old| id(old) == id(worker))?;
        let spent = float(worker, &["busy"])? - float(old, &["busy"])?;
        Some((spent / growth.seconds).clamp(0.0, 1.0))
    });
    shares.reduce(f64::max)
}

/// The newest first.
fn slow(tree: &Value) -> Vec<SlowRow> {
    let list = at(tree, &["slow"]).and_then(Value::as_array);
    let rows = list.into_iter().flatten().map(|one| {
        let phases = members(one, &["phases"]);
        let mut phases: Vec<_> = phases
            .filter_map(|(name, seconds)| Some((name.to_owned(), seconds.as_f64()?)))
            .collect();
        phases.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        SlowRow {
            at_ms: number(one, &["at"]),
            seconds: number(one, &["time"]),
            status: number(one, &["status"]),
            request: text(one, &["request"]).to_owned(),
            upstream: text(one, &["upstream"]).to_owned(),
            phases,
        }
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| b.at_ms.total_cmp(&a.at_ms));
    rows
}
