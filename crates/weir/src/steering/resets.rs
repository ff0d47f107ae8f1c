//! Counters that begin anew, by `DELETE` of what the API shows, as in NGINX Plus.
//!
//! All processes count in one memory, in which the deciding process has blocks of its own that take
//! the counts of the others out of the sums. So no worker is told, and none has to wait.

use conf::Subsystem;
use metrics::{Kind, Metric, Workers};
use session::status::{Program, ShownZone, SubsystemStatus};
use upstream::ServerCounts;
use upstream::api::{SpecRefusal, percent_decoded};

use crate::subsystems::Sites;

/// Counters that a path names.
pub(super) struct ResetPath {
    parts: Vec<Box<[u8]>>,
}

impl ResetPath {
    /// `None`: the path names something else.
    pub(super) fn parse(path: &[u8]) -> Option<Self> {
        const COLLECTIONS: [&[u8]; 6] = [
            b"server_zones",
            b"location_zones",
            b"caches",
            b"limit_conns",
            b"limit_reqs",
            b"upstreams",
        ];
        let parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        let parts: Vec<_> = parts.map(percent_decoded).collect();
        let texts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
        match texts[..] {
            [b"processes" | b"connections" | b"ssl"]
            | [b"http", b"requests"]
            | [b"slabs" | b"resolvers", _] => {}
            [b"http" | b"stream", collection, _] if COLLECTIONS.contains(&collection) => {}
            _ => return None,
        }
        Some(Self { parts })
    }

    /// Begins the counters anew.
    pub(super) fn reset(&self, sites: &Sites) -> Result<(), SpecRefusal> {
        let parts: Vec<&[u8]> = self.parts.iter().map(|part| &**part).collect();
        match parts[..] {
            [b"processes"] => Program::reset_lost_processes(),
            [b"connections"] => Workers::reset_connections(),
            [b"ssl"] => reset_handshakes(sites),
            [b"http", b"requests"] => Workers::reset_requests(),
            [b"resolvers", name] => return reset_resolver(name, sites),
            [block, collection, name] => {
                let subsystem = match block {
                    b"stream" => Subsystem::Stream,
                    _ => Subsystem::Http,
                };
                return reset_object(subsystem, collection, name, sites);
            }
            [b"slabs", name] => return Err(no_slab_counters(name, sites)),
            _ => return Err(not_found("path not found", "PathNotFound")),
        }
        Ok(())
    }

    /// What it names, for the log.
    pub(super) fn told(&self) -> String {
        String::from_utf8_lossy(&self.parts.join(&b'/')).into_owned()
    }
}

/// The sums of TLS are those of all zones.
fn reset_handshakes(sites: &Sites) {
    for subsystem in [Subsystem::Http, Subsystem::Stream] {
        sites.shown(subsystem).servers.iter().for_each(ShownZone::reset_handshakes);
    }
}

fn reset_object(
    subsystem: Subsystem,
    collection: &[u8],
    name: &[u8],
    sites: &Sites,
) -> Result<(), SpecRefusal> {
    let status = sites.shown(subsystem);
    match collection {
        b"server_zones" => {
            let zone = status.servers.iter().find(|zone| *zone.name == *name);
            zone.ok_or_else(|| not_found("server zone not found", "ServerZoneNotFound"))?.reset();
        }
        b"location_zones" => {
            let zone = status.locations.iter().find(|zone| *zone.name == *name);
            zone.ok_or_else(|| not_found("location zone not found", "LocationZoneNotFound"))?
                .reset();
        }
        b"limit_conns" => {
            reset_limit(status, "limit_conn_zone", name)
                .ok_or_else(|| not_found("limit_conn not found", "LimitConnNotFound"))?;
        }
        b"limit_reqs" => {
            reset_limit(status, "limit_req_zone", name)
                .ok_or_else(|| not_found("limit_req not found", "LimitReqNotFound"))?;
        }
        b"upstreams" => {
            let group = status.groups.iter().find(|group| group.name() == name);
            let group = group.ok_or_else(|| not_found("upstream not found", "UpstreamNotFound"))?;
            group.counters().reset();
            // Also of servers that only the workers know, because their names were resolved there.
            reset_all::<ServerCounts>(&[&group.metric_name()[..], b"\0"].concat());
        }
        _ => {
            let cache = status.caches.iter().find(|cache| *cache.name == *name);
            let cache = cache.ok_or_else(|| not_found("cache not found", "CacheNotFound"))?;
            cache.metric.reset();
        }
    }
    Ok(())
}

fn reset_limit(status: &SubsystemStatus, directive: &str, name: &[u8]) -> Option<()> {
    let is_meant =
        |directive_of: &str, name_of: &[u8]| directive_of == directive && name_of == name;
    let limit = status.limits.iter().find(|limit| is_meant(limit.directive, &limit.name))?;
    limit.metric.reset();
    Some(())
}

fn reset_resolver(name: &[u8], sites: &Sites) -> Result<(), SpecRefusal> {
    let blocks = [Subsystem::Http, Subsystem::Stream].map(|subsystem| sites.shown(subsystem));
    let all = blocks.into_iter().flat_map(|status| &status.resolvers);
    let mut meant = all.filter(|(zone, _)| **zone == *name).peekable();
    if meant.peek().is_none() {
        return Err(not_found("resolver zone not found", "ResolverZoneNotFound"));
    }
    meant.for_each(|(_, metric)| metric.reset());
    Ok(())
}

/// Memory is measured, not counted.
fn no_slab_counters(name: &[u8], sites: &Sites) -> SpecRefusal {
    let blocks = [Subsystem::Http, Subsystem::Stream].map(|subsystem| sites.shown(subsystem));
    let is_there = blocks.iter().any(|status| status.slabs.iter().any(|slab| *slab.name == *name));
    match is_there {
        true => SpecRefusal::new(405, "slabs have no counters", "MethodDisabled"),
        false => not_found("slab not found", "SlabNotFound"),
    }
}

/// Everything that is counted under names that begin so.
fn reset_all<K: Kind>(prefix: &[u8]) {
    for name in Metric::<K>::names_with(prefix) {
        Metric::<K>::named(&name).reset();
    }
}

fn not_found(text: &str, code: &'static str) -> SpecRefusal {
    SpecRefusal::new(404, text, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_counters() {
        let is_one = |path: &str| ResetPath::parse(path.as_bytes()).is_some();
        for path in
            ["connections", "http/requests", "http/upstreams/a", "stream/server_zones/a/", "ssl"]
        {
            assert!(is_one(path), "{path}");
        }
        for path in
            ["http", "http/upstreams", "http/upstreams/a/servers", "http/keyvals/a", "ssl/x"]
        {
            assert!(!is_one(path), "{path}");
        }
    }
}
