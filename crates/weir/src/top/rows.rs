//! What tables show: sites, servers of upstream groups, caches, slow requests.

use super::growth::TopTimes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiteKind {
    Server,
    Location,
    Stream,
}

pub(super) struct SiteRow {
    pub(super) name: String,
    pub(super) kind: SiteKind,
    pub(super) rate: Option<f64>,
    pub(super) in_progress: Option<f64>,
    /// Replies between the snapshots, by the first digit of their status.
    pub(super) classes: [f64; 6],
    pub(super) received: Option<f64>,
    pub(super) sent: Option<f64>,
    pub(super) times: TopTimes,
}

pub(super) struct GroupRow {
    pub(super) name: String,
    pub(super) servers: Vec<ServerRow>,
    /// Length and limit.
    pub(super) queue: Option<(f64, f64)>,
}

pub(super) struct ServerRow {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) why: String,
    pub(super) since_ms: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) active: f64,
    pub(super) limit: f64,
    pub(super) classes: [f64; 6],
    pub(super) fails: f64,
    pub(super) times: TopTimes,
    /// The share of requests on kept connections.
    pub(super) reuse: Option<f64>,
}

pub(super) struct CacheRow {
    pub(super) name: String,
    pub(super) rate: Option<f64>,
    /// The share of responses that are the cache's; `None` without responses.
    pub(super) hits: Option<f64>,
    /// Bytes from the cache.
    pub(super) sent: Option<f64>,
    pub(super) stored: Option<f64>,
    pub(super) size: f64,
    pub(super) size_max: f64,
    pub(super) entries: Option<f64>,
    pub(super) entries_max: f64,
    pub(super) purge_rules: Option<f64>,
    /// Whether its directory was not read yet.
    pub(super) is_cold: bool,
}

pub(super) struct SlowRow {
    pub(super) at_ms: f64,
    pub(super) seconds: f64,
    pub(super) status: f64,
    pub(super) request: String,
    pub(super) upstream: String,
    /// The longest first.
    pub(super) phases: Vec<(String, f64)>,
}

impl ServerRow {
    /// Whether it is out of use although the configuration wants it.
    pub(super) fn is_bad(&self) -> bool {
        matches!(&*self.state, "unhealthy" | "unavailable" | "unavail")
    }
}

/// The share of 5xx; `None` without replies.
pub(super) fn share(classes: [f64; 6]) -> Option<f64> {
    let all: f64 = classes.iter().sum();
    (all > 0.0).then(|| classes[5] / all)
}
