//! What caches of responses have done, by zone, and how they are filled.

use std::fmt;
use std::sync::Arc;

use metrics::{Metric, Tallies};

/// What a cache has done for a request: `$upstream_cache_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    Hit,
    Stale,
    Updating,
    Revalidated,
    Miss,
    Expired,
    Bypass,
}

metrics::counts! {
    /// What the cache of a zone has done, by [`CacheOutcome`].
    pub struct CacheCounters of CacheCounts = 21 {
        responses: Tallies<{ CacheOutcome::ALL.len() }>,
        /// Bodies from the cache, or all that backends have sent.
        bytes: Tallies<{ CacheOutcome::ALL.len() }>,
        /// Stored responses.
        responses_written: Tallies<{ CacheOutcome::ALL.len() }>,
        bytes_written: Tallies<{ CacheOutcome::ALL.len() }>,
    }
}

/// How a cache is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheLevels {
    /// The bytes of its files.
    pub size: u64,
    /// `max_size`, if there is a limit.
    pub size_max: Option<u64>,
    pub entries: u64,
    pub entries_max: u64,
    /// Purges whose files may still be there.
    pub purge_rules: u64,
    /// Whether its directory was not read yet.
    pub is_cold: bool,
}

/// A cache that is shown.
#[derive(Clone)]
pub struct ShownCache {
    pub name: Box<[u8]>,
    pub metric: Metric<CacheCounts>,
    pub levels: Arc<dyn Fn() -> CacheLevels + Send + Sync>,
}

impl fmt::Debug for ShownCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.metric)
    }
}

impl CacheOutcome {
    pub const ALL: [Self; 7] = [
        Self::Hit,
        Self::Stale,
        Self::Updating,
        Self::Revalidated,
        Self::Miss,
        Self::Expired,
        Self::Bypass,
    ];

    /// Its name on status pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Updating => "updating",
            Self::Revalidated => "revalidated",
            Self::Miss => "miss",
            Self::Expired => "expired",
            Self::Bypass => "bypass",
        }
    }

    /// Whether the response was the backend's, and may have been stored.
    pub fn is_fetched(self) -> bool {
        matches!(self, Self::Miss | Self::Expired | Self::Bypass)
    }
}

impl CacheCounters<'_> {
    /// Counts a response of so many bytes.
    pub fn answered(self, outcome: CacheOutcome, bytes: u64) {
        self.responses().at(outcome as usize).add(1);
        self.bytes().at(outcome as usize).add(bytes);
    }

    /// Counts a response that was stored.
    pub fn stored(self, outcome: CacheOutcome, bytes: u64) {
        self.responses_written().at(outcome as usize).add(1);
        self.bytes_written().at(outcome as usize).add(bytes);
    }
}
