//! The complete plan of a run: parsed options and resolved names.

use std::net::IpAddr;
use std::time::Duration;

use net::Address;
use net::tls::ClientTransport;

use super::schedule::RateSchedule;
use crate::requests::{Mix, PreparedRequest};
use crate::script;
use crate::target::TargetScheme;

/// The plan of a run, shared by all threads.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The requested URLs, as they were written.
    pub urls: Vec<String>,
    pub scheme: TargetScheme,
    pub address: Address,
    /// The local addresses of connections, in turn; if empty, the system chooses.
    pub from: Vec<IpAddr>,
    pub mix: Mix,
    pub threads: u64,
    /// Connections of all threads.
    pub connections: u64,
    /// How long to start requests.
    pub duration: Option<Duration>,
    /// The number of requests to start.
    pub requests: Option<u64>,
    /// The rate of an open loop.
    pub rate: Option<RateSchedule>,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The most requests of a connection; opening it then counts as part of a request's time.
    pub per_connection: Option<u64>,
    /// The number of pipelined requests.
    pub pipeline: u64,
    /// The script that makes the requests.
    pub script: Option<ScriptPlan>,
    /// Whether threads continue after the duration with another turn. This requires a duration, and
    /// excludes scripts, a number of requests, and ramps.
    pub in_turns: bool,
    /// HTTP/2: concurrent requests on a connection. `None` for HTTP/1.
    pub streams: Option<u64>,
    /// TLS; `None` for none.
    pub tls: Option<ClientTransport>,
    pub background: BackgroundPlan,
}

/// Connections beside the measured load.
#[derive(Clone, Debug)]
pub struct BackgroundPlan {
    /// Connections that stay silent after one reply.
    pub idle: u64,
    /// Connections that read slowly.
    pub slow: u64,
    /// The rate of each of those.
    pub slow_bytes_per_s: u64,
    /// The request of both.
    pub request: PreparedRequest,
}

/// The source of a script, which every thread loads into its own state.
#[derive(Clone, Debug)]
pub struct ScriptPlan {
    /// Its path.
    pub name: String,
    pub source: Vec<u8>,
    /// The request on the command line.
    pub target: script::ScriptTarget,
    /// The URL and the words after it.
    pub arguments: Vec<String>,
}

impl RunPlan {
    /// The share of a thread in `total`.
    pub(super) fn share(&self, thread: u64, total: u64) -> u64 {
        total / self.threads + u64::from(thread < total % self.threads)
    }

    /// The number of a thread's first request, of `total` over all threads.
    pub(super) fn first(&self, thread: u64, total: u64) -> u64 {
        total / self.threads * thread + thread.min(total % self.threads)
    }

    /// Connections of all kinds.
    pub fn all_connections(&self) -> u64 {
        self.connections + self.background.idle + self.background.slow
    }

    /// The end of an open loop, from its beginning: when one more request would start.
    pub(super) fn starts_end(&self) -> Duration {
        let counted = self.rate.zip(self.requests).map(|(rate, total)| rate.start_of(total));
        [self.duration, counted].into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    /// The timeout of a request, in milliseconds.
    pub(super) fn timeout_ms(&self) -> u64 {
        self.timeout.as_micros().div_ceil(1000) as u64
    }

    /// The local address of a client's connections.
    pub(super) fn source(&self, client: u64) -> Option<IpAddr> {
        let count = self.from.len();
        (count > 0).then(|| self.from[client as usize % count])
    }
}
