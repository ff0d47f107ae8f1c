//! What was measured, and the ways to show it.
//!
//! Threads count for themselves into a [`RunStats`]; at the end they are added up. Every latency is
//! in microseconds, from the moment the request should have started to the last byte of its reply.

pub(crate) mod amounts;
pub mod compare;
mod doubts;
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

pub use doubts::{Doubt, doubts};
pub use hlog::hlog;
pub use percentile::Percentile;
pub use spread::Spread;
pub use statuses::StatusCounts;
pub use tls_stats::{AgreedTls, TlsStats};
pub use turns::{ComparedSide, MeasuredTurn, TurnBlock, Turns};

/// What one thread has seen, or all of them together.
#[derive(Clone, Debug)]
pub struct RunStats {
    /// Complete replies, whatever their status.
    pub replies: u64,
    /// Bytes received, heads included.
    pub bytes: u64,
    /// Replies by their status.
    pub statuses: StatusCounts,
    /// Latencies of complete replies.
    pub latency_us: Histogram<u64>,
    /// Replies a second of each thread, looked at ten times a second.
    pub rate: Histogram<u64>,
    /// Open loop: how long after its time a request was sent though a connection was free for it.
    pub lateness_us: Histogram<u64>,
    /// Open loop: requests whose time had come and which were never sent.
    pub unsent: u64,
    /// What went wrong.
    pub errors: Errors,
    /// Handshakes, where there were any.
    pub tls: TlsStats,
}

/// Requests and connections that went wrong, each counted once, as what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Connections refused.
    pub refused: u64,
    /// Connections that failed otherwise: no route, no address, no port left.
    pub unreachable: u64,
    /// TLS handshakes that failed.
    pub handshake: u64,
    /// Connections reset while a request was on its way or waited for its reply.
    pub reset: u64,
    /// Connections that the server closed before the first byte of a reply.
    pub closed: u64,
    /// Replies that ended too early.
    pub short: u64,
    /// Replies that are not HTTP, or not what was asked for.
    pub invalid: u64,
    /// Requests that could not be written for another reason.
    pub write: u64,
    /// Requests without a complete reply in time.
    pub timeout: u64,
}

/// A second of a run, as it is shown while it runs.
#[derive(Clone, Debug)]
pub struct Second {
    /// Seconds since the start, at its end.
    pub at: f64,
    /// What was counted in it.
    pub tally: RunStats,
}

/// Which kind of load it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadKind {
    /// Every connection sends its next request when it has the last one's reply.
    Closed,
    /// Requests start by the clock, whatever the server does: from so many a second to so many.
    Open {
        /// Requests a second at the start.
        from: f64,
        /// Requests a second at the end.
        to: f64,
    },
}

/// What is kept of a second when a run is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since the start, at its end.
    pub at: f64,
    /// Complete replies.
    pub replies: u64,
    /// Requests that failed, those with a bad status among them.
    pub errors: u64,
    /// The mean of latencies in microseconds.
    pub mean_us: f64,
    /// Their median.
    pub p50_us: u64,
    /// What 99 of 100 stay below.
    pub p99_us: u64,
    /// The highest.
    pub max_us: u64,
    /// All of them, in HdrHistogram's packed form; nothing where a file was read.
    pub packed: Vec<u8>,
}

/// A run, complete.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for, as it was written.
    pub urls: Vec<String>,
    /// Threads.
    pub threads: u64,
    /// Connections.
    pub connections: u64,
    /// The time it was to take; `None`: as long as its requests take.
    pub duration: Option<Duration>,
    /// The kind of load.
    pub pace: LoadKind,
    /// When it began, in milliseconds since 1970.
    pub began_unix_ms: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// All threads together.
    pub tally: RunStats,
    /// Second by second.
    pub seconds: Vec<Moment>,
    /// The CPU time that the generator took for it, all threads together.
    pub cpu: Duration,
    /// The share of a second that the busiest thread was on a CPU, where it was most; of the whole
    /// run, if that is shorter.
    pub busiest_thread: f64,
    /// Whether somebody ended it before its time.
    pub interrupted: bool,
    /// Whether it kept to what was expected of it; empty where nothing was, and of a file.
    pub judged: Vec<Judged>,
}

/// An expectation, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// As it was written.
    pub expectation: String,
    /// Whether the run kept to it.
    pub kept: bool,
    /// The value that was measured: microseconds, requests, a percentage of requests, requests a
    /// second or bytes a second. `None`: there was nothing to measure.
    pub measured: Option<f64>,
    /// The same as text.
    pub shown: String,
}
