//! Zones with a key: a zone for each of a limited number of values.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::{Load, Subsystem};
use metrics::Metric;
use zones::{TwoProcesses, ZoneState, Zones};

use super::counters::{ZoneCounters, ZoneCounts};
use super::names::{ZoneLevel, metric_name};
use crate::WorkerSlot;

/// How many values without a zone of their own a worker remembers before it asks again.
const CACHED_MAX: usize = 1024;

/// The zones of all values of a key.
pub struct KeyedZones {
    subsystem: Subsystem,
    level: ZoneLevel,
    pub(super) name: Box<[u8]>,
    /// The largest number of all lines that name the zone.
    most: AtomicUsize,
    /// What has no room of its own is counted here.
    pub(super) rest: Metric<ZoneCounts>,
    values: Mutex<HashMap<Box<[u8]>, Metric<ZoneCounts>>>,
    is_full: AtomicBool,
}

/// The zones of the configuration that is being read, by the names of their metrics.
#[derive(Default)]
struct NamedKeyedZones(HashMap<Vec<u8>, Arc<KeyedZones>>);

impl ZoneState for KeyedZones {
    const DIRECTIVES: &'static [&'static str] = &["status_zone"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Shared;
}

impl KeyedZones {
    /// The zones under that name, with the values that have been counted before.
    pub fn open(level: ZoneLevel, name: &[u8], most: u32, load: &mut Load<'_>) -> Arc<Self> {
        let subsystem = load.subsystem;
        let metric = metric_name(subsystem, level, name, None);
        let most = most as usize;
        if let Some(known) = load.own.of::<NamedKeyedZones>().0.get(&metric) {
            known.set_most(most.max(known.most.load(Ordering::Relaxed)));
            return known.clone();
        }
        let make = || Arc::new(Self::new(subsystem, level, name));
        let zones =
            Zones::of(load).keep(&metric, |old: Option<Arc<Self>>| old.unwrap_or_else(make));
        zones.set_most(most);
        load.own.of::<NamedKeyedZones>().0.insert(metric, zones.clone());
        zones
    }

    fn new(subsystem: Subsystem, level: ZoneLevel, name: &[u8]) -> Self {
        let rest = Metric::named(&metric_name(subsystem, level, name, None));
        let prefix = metric_name(subsystem, level, name, Some(b""));
        let known = Metric::<ZoneCounts>::names_with(&prefix);
        let value = |name: Box<[u8]>| (name[prefix.len()..].into(), Metric::named(&name));
        let values = Mutex::new(known.into_iter().map(value).collect());
        let (most, is_full) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { subsystem, level, name: name.into(), most, rest, values, is_full }
    }

    fn set_most(&self, most: usize) {
        let values = self.lock();
        self.most.store(most, Ordering::Relaxed);
        self.is_full.store(values.len() >= most, Ordering::Relaxed);
    }

    /// The values, in order, with their zones.
    pub(super) fn all(&self) -> Vec<(Box<[u8]>, Metric<ZoneCounts>)> {
        let values = self.lock();
        let mut all: Vec<_> =
            values.iter().map(|(key, zone)| (key.clone(), zone.clone())).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Begins counts anew, also those of values that only other processes know.
    pub(super) fn reset_each(&self, reset: fn(&Metric<ZoneCounts>)) {
        let Self { subsystem, level, name, rest, .. } = self;
        reset(rest);
        let prefix = metric_name(*subsystem, *level, name, Some(b""));
        for value in Metric::<ZoneCounts>::names_with(&prefix) {
            reset(&Metric::named(&value));
        }
    }

    /// The zone of a value; a new one if there is room.
    fn of(&self, value: &[u8]) -> Option<Metric<ZoneCounts>> {
        let mut values = self.lock();
        if let Some(known) = values.get(value) {
            return Some(known.clone());
        }
        let most = self.most.load(Ordering::Relaxed);
        if values.len() >= most {
            return None;
        }
        let name = metric_name(self.subsystem, self.level, &self.name, Some(value));
        let made = Metric::named(&name);
        values.insert(value.into(), made.clone());
        self.is_full.store(values.len() >= most, Ordering::Relaxed);
        Some(made)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Metric<ZoneCounts>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The zones by value that one worker has used, so that it asks for each only once.
#[derive(Default)]
pub struct ZoneCache(RefCell<Vec<(Arc<KeyedZones>, CachedZones)>>);

/// `None`: the value has no zone of its own.
type CachedZones = HashMap<Box<[u8]>, Option<Metric<ZoneCounts>>>;

impl<G> WorkerSlot<G> for ZoneCache {}

impl ZoneCache {
    /// This worker's counters for a value.
    pub(super) fn counters(&self, zones: &Arc<KeyedZones>, value: &[u8]) -> ZoneCounters<'static> {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|(known, _)| Arc::ptr_eq(known, zones));
        let at = at.unwrap_or_else(|| {
            all.push((zones.clone(), CachedZones::new()));
            all.len() - 1
        });
        let cached = &mut all[at].1;
        let own = match cached.get(value) {
            Some(known) => known.as_ref().map(Metric::own),
            // Once it is full, values without a zone are not worth remembering.
            None if zones.is_full.load(Ordering::Relaxed) && cached.len() >= CACHED_MAX => None,
            None => {
                let zone = zones.of(value);
                let own = zone.as_ref().map(Metric::own);
                cached.insert(value.into(), zone);
                own
            }
        };
        own.unwrap_or_else(|| {
            let rest = zones.rest.own();
            rest.overflows().add(1);
            rest
        })
    }
}
