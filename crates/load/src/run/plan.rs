//! What a run does, complete: every word understood, every name resolved.

use std::net::IpAddr;
use std::time::Duration;

use net::Address;
use net::tls::ClientTransport;

use super::schedule::RateSchedule;
use crate::requests::Mix;
use crate::script;
use crate::target::TargetScheme;

/// See above. It is shared by all threads.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// What is asked for, as it was written.
    pub urls: Vec<String>,
    /// What is spoken.
    pub scheme: TargetScheme,
    /// The server.
    pub address: Address,
    /// The addresses that connections come from, in turn; none: the system chooses.
    pub from: Vec<IpAddr>,
    /// What is sent.
    pub mix: Mix,
    /// Threads.
    pub threads: u64,
    /// Connections of all threads.
    pub connections: u64,
    /// How long requests are started.
    pub duration: Option<Duration>,
    /// How many are started.
    pub requests: Option<u64>,
    /// An open loop's rate of starts.
    pub rate: Option<RateSchedule>,
    /// How long a request may take.
    pub timeout: Duration,
    /// Requests on one connection at most; it is then opened within the time of a request.
    pub per_connection: Option<u64>,
    /// Requests sent at once, one behind the other.
    pub pipeline: u64,
    /// Who makes the requests instead.
    pub script: Option<ScriptPlan>,
    /// Whether threads go on after the time is up, with another turn of as long. There is a
    /// duration then, no script, and neither a number of requests nor a ramp.
    pub in_turns: bool,
    /// HTTP/2: requests at once on a connection. `None`: HTTP/1.
    pub streams: Option<u64>,
    /// What secures connections.
    pub tls: Option<ClientTransport>,
}

/// A script, read but not understood yet: every thread has its own state.
#[derive(Clone, Debug)]
pub struct ScriptPlan {
    /// Its path.
    pub name: String,
    /// Its text.
    pub source: Vec<u8>,
    /// The request that was asked for.
    pub target: script::ScriptTarget,
    /// The URL, and the words that follow it.
    pub arguments: Vec<String>,
}

impl RunPlan {
    /// How many of `total` are the share of a thread.
    pub(super) fn share(&self, thread: u64, total: u64) -> u64 {
        total / self.threads + u64::from(thread < total % self.threads)
    }

    /// The number of the first request of a thread, of those that are `total` over all threads.
    pub(super) fn first(&self, thread: u64, total: u64) -> u64 {
        total / self.threads * thread + thread.min(total % self.threads)
    }

    /// When an open loop is over, counted from the beginning: one more request would start then.
    pub(super) fn starts_end(&self) -> Duration {
        let counted = self.rate.zip(self.requests).map(|(rate, total)| rate.start_of(total));
        [self.duration, counted].into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    /// How long a request may take, in whole milliseconds.
    pub(super) fn timeout_ms(&self) -> u64 {
        self.timeout.as_micros().div_ceil(1000) as u64
    }

    /// Where a client's connections come from.
    pub(super) fn source(&self, client: u64) -> Option<IpAddr> {
        let count = self.from.len();
        (count > 0).then(|| self.from[client as usize % count])
    }
}
