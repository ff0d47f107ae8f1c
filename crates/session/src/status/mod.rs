//! `status_zone`: what is counted per zone, and what a subsystem shows of itself.
//!
//! A zone counts the sessions of the servers or locations that name it. A zone with a key counts
//! them by the key's value, for a limited number of values; the rest is counted under the zone's
//! own name.
//!
//! Deliberately absent: pages ([`metrics::tree`] writes them).

mod caches;
mod counters;
mod job;
mod keyed;
mod limits;
mod line;
mod names;
mod program;
pub(crate) mod published;
pub mod shapes;
#[cfg(test)]
mod tests;

pub use caches::{CacheCounters, CacheCounts, CacheLevels, CacheOutcome, ShownCache};
pub use counters::{SessionEnd, ZoneCounters, ZoneCounts};
pub use job::StatusJob;
pub use keyed::ZoneCache;
pub use limits::{LimitCounters, LimitCounts};
pub use line::{CountedIn, StatusZone};
pub use names::ZoneLevel;
pub use program::{Program, ProgramCounters, ProgramFacts};
pub use published::{
    ShowMore, ShownCertificate, ShownLimit, ShownZone, StatusBook, SubsystemStatus, count_always,
    published,
};
