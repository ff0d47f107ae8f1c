//! What each subsystem shows of itself: the zones and groups of its newest configuration.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use ::upstream::Group;
use ::upstream::resolver::{ResolverCounts, ResolverZones};
use conf::{Registry, Subsystem};
use metrics::Metric;
use metrics::tree::StatusTree;

use super::caches::ShownCache;
use super::counters::ZoneCounts;
use super::keyed::KeyedZones;
use super::limits::LimitCounts;
use super::names::ZoneLevel;
use crate::keyval::zone::KeyvalZone;
use crate::slabs::ShownSlab;

/// A zone that is shown.
#[derive(Clone)]
pub struct ShownZone {
    pub name: Box<[u8]>,
    /// Whether a server of the zone speaks TLS.
    pub has_tls: bool,
    pub(super) zones: ZonesOfName,
}

/// One zone, or one for each value of a key.
#[derive(Clone)]
pub(super) enum ZonesOfName {
    One(Metric<ZoneCounts>),
    ByKey(Arc<KeyedZones>),
}

/// Adds sections to a tree.
pub type ShowMore = fn(&mut StatusTree);

/// A zone of limits.
#[derive(Clone)]
pub struct ShownLimit {
    /// The directive that declares it.
    pub directive: &'static str,
    pub name: Box<[u8]>,
    pub metric: Metric<LimitCounts>,
}

/// A certificate that is shown to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCertificate {
    pub file: Box<[u8]>,
    /// The hosts it is for.
    pub names: Vec<Box<[u8]>>,
    /// When it expires, in seconds since 1970.
    pub not_after_s: i64,
}

/// What a subsystem shows.
#[derive(Clone, Default)]
pub struct SubsystemStatus {
    pub servers: Vec<ShownZone>,
    pub locations: Vec<ShownZone>,
    pub groups: Vec<Arc<Group>>,
    pub limits: Vec<ShownLimit>,
    pub caches: Vec<ShownCache>,
    pub keyvals: Vec<Arc<KeyvalZone>>,
    pub slabs: Vec<ShownSlab>,
    pub resolvers: Vec<(Box<[u8]>, Metric<ResolverCounts>)>,
    pub certificates: Vec<ShownCertificate>,
    /// What features add to Weir's own tree.
    pub more: Vec<ShowMore>,
    /// Whether a page of this configuration shows what is counted.
    pub is_shown: bool,
    /// Whether the configuration has the subsystem's block.
    pub is_configured: bool,
}

/// What is to be shown of the configuration that is being compiled.
#[derive(Default)]
pub struct StatusBook(SubsystemStatus);

impl StatusBook {
    /// Adds a zone, unless it is shown already.
    pub(super) fn add(&mut self, level: ZoneLevel, zone: ShownZone) {
        let zones = match level {
            ZoneLevel::Server => &mut self.0.servers,
            ZoneLevel::Location => &mut self.0.locations,
        };
        if !zones.iter().any(|known| known.name == zone.name) {
            zones.push(zone);
        }
    }

    /// A server of that zone speaks TLS.
    pub fn speaks_tls(&mut self, name: &[u8]) {
        let zones = self.0.servers.iter_mut().filter(|zone| *zone.name == *name);
        zones.for_each(|zone| zone.has_tls = true);
    }

    /// Adds what a feature shows, unless it is shown already.
    pub fn show_more(&mut self, more: ShowMore) {
        if !self.0.more.iter().any(|known| std::ptr::fn_addr_eq(*known, more)) {
            self.0.more.push(more);
        }
    }

    /// Adds a certificate, unless it is shown already.
    pub fn add_certificate(&mut self, certificate: ShownCertificate) {
        if !self.0.certificates.contains(&certificate) {
            self.0.certificates.push(certificate);
        }
    }

    /// Adds a zone of limits.
    pub fn add_limit(
        &mut self,
        directive: &'static str,
        name: &[u8],
        metric: &Metric<LimitCounts>,
    ) {
        self.0.limits.push(ShownLimit { directive, name: name.into(), metric: metric.clone() });
    }

    /// Adds a cache.
    pub fn add_cache(&mut self, cache: ShownCache) {
        self.0.caches.push(cache);
    }

    /// Adds a table.
    pub fn add_keyval(&mut self, zone: &Arc<KeyvalZone>) {
        self.0.keyvals.push(zone.clone());
        let (name, zone) = (zone.name.clone(), zone.clone());
        self.add_slab(ShownSlab::new(&name, move || zone.table().memory()));
    }

    /// Adds the memory of a zone.
    pub fn add_slab(&mut self, slab: ShownSlab) {
        self.0.slabs.push(slab);
    }

    /// A page shows what is counted.
    pub fn show(&mut self) {
        self.0.is_shown = true;
    }

    /// All that is shown, with the groups of the finished configuration.
    pub fn finish(own: &mut Registry, groups: &[Arc<Group>]) -> Arc<SubsystemStatus> {
        let Self(status) = std::mem::take(own.of());
        let ResolverZones(resolvers) = std::mem::take(own.of());
        let groups = groups.to_vec();
        Arc::new(SubsystemStatus { groups, resolvers, is_configured: true, ..status })
    }
}

impl ShownZone {
    /// Begins all that it counts anew, as [`Metric::reset`].
    pub fn reset(&self) {
        match &self.zones {
            ZonesOfName::One(metric) => metric.reset(),
            ZonesOfName::ByKey(zones) => zones.reset_each(Metric::reset),
        }
    }

    /// Begins what it counts of TLS anew.
    pub fn reset_handshakes(&self) {
        match &self.zones {
            ZonesOfName::One(metric) => ZoneCounts::reset_handshakes(metric),
            ZonesOfName::ByKey(zones) => zones.reset_each(ZoneCounts::reset_handshakes),
        }
    }

    /// The zones by name: a zone with a key is several.
    pub fn all(&self) -> Vec<(Box<[u8]>, Metric<ZoneCounts>)> {
        match &self.zones {
            ZonesOfName::One(metric) => vec![(self.name.clone(), metric.clone())],
            ZonesOfName::ByKey(zones) => {
                let mut all = vec![(zones.name.clone(), zones.rest.clone())];
                all.extend(zones.all());
                all
            }
        }
    }
}

type PublishedStatus = Mutex<Vec<(Subsystem, Arc<SubsystemStatus>)>>;

static PUBLISHED: PublishedStatus = Mutex::new(Vec::new());

/// What a subsystem shows now; nothing, if it has no configuration.
pub fn published(subsystem: Subsystem) -> Arc<SubsystemStatus> {
    let all = PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.iter().find(|(known, _)| *known == subsystem);
    found.map(|(_, status)| status.clone()).unwrap_or_default()
}

/// Shows the configuration of a subsystem.
pub(super) fn publish(subsystem: Subsystem, status: &Arc<SubsystemStatus>) {
    let mut all = PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(known, _)| *known != subsystem);
    all.push((subsystem, status.clone()));
    let is_shown = all.iter().any(|(_, status)| status.is_shown);
    metrics::want(is_shown || COUNTS_ALWAYS.load(Relaxed));
}

/// Whether this process counts whatever its configuration shows.
static COUNTS_ALWAYS: AtomicBool = AtomicBool::new(false);

/// Counts from now on, even if no page of the configuration shows it: somebody looks in another
/// way.
pub fn count_always() {
    COUNTS_ALWAYS.store(true, Relaxed);
    metrics::want(true);
}
