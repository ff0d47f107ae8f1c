//! The results of runs, and their output formats.
//!
//! Each thread counts into its own [`RunStats`]; they are added up at the end. Every latency is in
//! microseconds, from the intended start of a request to the last byte of its reply.

pub(crate) mod amounts;
mod background;
pub mod compare;
mod doubts;
mod histogram;
mod hlog;
pub mod json;
pub mod live;
mod moment;
pub mod notes;
mod percentile;
mod spread;
mod statuses;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
mod tls_stats;
mod turns;
pub mod wrk;

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use background::{BackgroundStats, IdleStats, SlowStats};
pub use doubts::{Doubt, doubts};
pub use hlog::hlog;
pub use percentile::Percentile;
pub use spread::Spread;
pub use statuses::StatusCounts;
pub use tls_stats::{AgreedTls, TlsStats};
pub use turns::{ComparedSide, MeasuredTurn, TurnBlock, Turns};

/// The counts of one thread, or of all threads.
#[derive(Clone, Debug)]
pub struct RunStats {
    /// Complete replies, whatever their status.
    pub replies: u64,
    /// Bytes received, including heads.
    pub bytes: u64,
    pub statuses: StatusCounts,
    /// Latencies of complete replies.
    pub latency_us: Histogram<u64>,
    /// Replies per second of each thread, sampled ten times a second.
    pub rate: Histogram<u64>,
    /// Open loop: how late requests were sent although a connection was free.
    pub lateness_us: Histogram<u64>,
    /// Open loop: requests that were due and never sent.
    pub unsent: u64,
    pub errors: Errors,
    pub tls: TlsStats,
    /// Connections beside the measured load.
    pub background: BackgroundStats,
}

/// Failed requests and connections, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Connections refused.
    pub refused: u64,
    /// Connections that failed for other reasons: no route, no address, no port left.
    pub unreachable: u64,
    /// TLS handshakes that failed. Older files lack it.
    #[serde(default)]
    pub handshake: u64,
    /// Connections reset while a request was being sent or waited for its reply.
    pub reset: u64,
    /// Connections that the server closed before the first byte of a reply.
    pub closed: u64,
    /// Replies that ended too early.
    pub short: u64,
    /// Replies that are not HTTP, or not replies to the request.
    pub invalid: u64,
    /// Requests that could not be written for other reasons.
    pub write: u64,
    /// Requests without a complete reply in time.
    pub timeout: u64,
}

/// A second of a run, for showing progress.
#[derive(Clone, Debug)]
pub struct Second {
    /// Its end, in seconds since the start.
    pub at: f64,
    pub tally: RunStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "\"closed\" or an object with from and to")]
pub enum LoadKind {
    /// Every connection sends a request after the reply to the last one.
    Closed,
    /// Requests start by the clock, whatever the server does, at a constant or growing rate.
    #[serde(untagged)]
    Open {
        /// Requests per second at the start.
        from: f64,
        /// Requests per second at the end.
        to: f64,
    },
}

/// The summary of a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Its end, in seconds since the start.
    pub at: f64,
    pub replies: u64,
    /// Failed requests, including those with an error status.
    pub errors: u64,
    /// The mean latency in microseconds.
    pub mean_us: f64,
    /// The median latency.
    pub p50_us: u64,
    /// The 99th percentile of latency.
    pub p99_us: u64,
    /// The highest latency.
    pub max_us: u64,
    /// All latencies, in HdrHistogram's packed format; empty if read from a file.
    #[serde(skip)]
    pub packed: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Results {
    /// The requested URLs, as they were written.
    pub urls: Vec<String>,
    pub threads: u64,
    pub connections: u64,
    /// The intended duration; `None` if a number of requests was given.
    pub duration: Option<Duration>,
    pub pace: LoadKind,
    /// When it began, in milliseconds since 1970.
    pub began_unix_ms: u64,
    pub elapsed: Duration,
    /// The counts of all threads.
    pub tally: RunStats,
    pub seconds: Vec<Moment>,
    /// The CPU time of the generator, of all threads.
    pub cpu: Duration,
    /// The highest share of a second that a thread used a CPU; of the whole run, if that is
    /// shorter.
    pub busiest_thread: f64,
    pub interrupted: bool,
    /// The judged expectations; empty if there were none, or if read from a file.
    pub judged: Vec<Judged>,
}

/// A judged expectation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The expectation, as it was written.
    pub expectation: String,
    /// Whether the run has kept it.
    pub kept: bool,
    /// The measured value: microseconds, requests, a percentage of requests, requests per second or
    /// bytes per second. `None` if it could not be measured.
    pub measured: Option<f64>,
    /// `measured` as text.
    #[serde(skip)]
    pub shown: String,
}
