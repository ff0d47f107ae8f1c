//! The line `status_zone`, and where a session is counted.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value, units};
use metrics::Metric;

use super::counters::{ZoneCounters, ZoneCounts};
use super::keyed::{KeyedZones, ZoneCache};
use super::names::{ZoneLevel, metric_name};
use super::published::{ShownZone, StatusBook, ZonesOfName};
use crate::Session;

/// The most values of a key that a zone can have.
const VALUES_MAX: u64 = 100_000;

/// A longer value of a key is not counted, as in Angie.
const VALUE_MAX: usize = 256;

/// The value of `status_zone`.
#[derive(Clone)]
pub enum StatusZone {
    Off,
    Named(Box<[u8]>),
    Keyed {
        key: Template,
        name: Box<[u8]>,
        /// How many values of the key are counted one by one.
        most: u32,
    },
}

impl Value for StatusZone {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let first = from.arg(0);
        let Some(word) = from.args.get(1) else {
            return Ok(match &*first.text {
                b"off" => Self::Off,
                name => Self::Named(name.into()),
            });
        };
        let invalid = || from.error_at(word, format!("invalid parameter \"{word}\""));
        let text = word.text.strip_prefix(b"zone=").ok_or_else(invalid)?;
        let (name, most) = match memchr::memrchr(b':', text) {
            None => (text, 1),
            Some(at) => (&text[..at], units::number(&text[at + 1..]).ok_or_else(invalid)?),
        };
        if name.is_empty() || !(1..=VALUES_MAX).contains(&most) {
            return Err(invalid());
        }
        let key = Template::compile(first, from, load)?;
        Ok(Self::Keyed { key, name: name.into(), most: most as u32 })
    }
}

/// Where sessions are counted.
pub struct CountedIn {
    pub name: Box<[u8]>,
    by: CountedBy,
}

enum CountedBy {
    Name(Metric<ZoneCounts>),
    Key(Template, Arc<KeyedZones>),
}

impl CountedIn {
    /// The place that a line names, which is shown from now on. `None`: nowhere.
    pub fn of(line: &StatusZone, level: ZoneLevel, load: &mut Load<'_>) -> Option<Self> {
        let (name, by, zones) = match line {
            StatusZone::Off => return None,
            StatusZone::Named(name) => {
                let metric = Metric::named(&metric_name(load.subsystem, level, name, None));
                (name, CountedBy::Name(metric.clone()), ZonesOfName::One(metric))
            }
            StatusZone::Keyed { key, name, most } => {
                let zones = KeyedZones::open(level, name, *most, load);
                (name, CountedBy::Key(key.clone(), zones.clone()), ZonesOfName::ByKey(zones))
            }
        };
        let shown = ShownZone { name: name.clone(), has_tls: false, zones };
        load.own.of::<StatusBook>().add(level, shown);
        Some(Self { name: name.clone(), by })
    }

    /// Whether all sessions are counted in one zone.
    pub fn is_fixed(&self) -> bool {
        matches!(self.by, CountedBy::Name(_))
    }

    /// This worker's counters for a session. `None`: it is not counted, because its key is empty or
    /// too long.
    pub fn counters<X: Session>(
        &self,
        x: &mut X,
        cache: &ZoneCache,
    ) -> Option<ZoneCounters<'static>> {
        match &self.by {
            CountedBy::Name(metric) => Some(metric.own()),
            CountedBy::Key(template, zones) => {
                let mut key = x.scratch();
                template.render(x, &mut key);
                let is_counted = (1..=VALUE_MAX).contains(&key.len());
                let counters = is_counted.then(|| cache.counters(zones, &key));
                x.give_scratch(key);
                counters
            }
        }
    }
}
