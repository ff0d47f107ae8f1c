//! The name servers of a `resolver` line, as a worker queries them: each in turn.

use std::cell::Cell;
use std::net::SocketAddr;

use metrics::Metric;

use super::counters::{ResolverCounters, ResolverCounts};
use super::line::NameServer;

/// After how long a query is sent again, as in nginx.
const RESEND_MS: u64 = 5000;

/// The contents of a `resolver` line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The name servers, used in turn; at least one.
    pub servers: Vec<SocketAddr>,
    /// How long an answer is used, instead of its TTL.
    pub valid_ms: Option<u64>,
    /// Whether IPv4 addresses are looked up.
    pub ipv4: bool,
    /// Whether IPv6 addresses are looked up.
    pub ipv6: bool,
    /// `status_zone`: where its lookups are counted.
    pub zone: Option<Box<[u8]>>,
}

/// One worker's name servers.
pub(super) struct ServerRotation {
    pub(super) settings: ResolverSettings,
    pub(super) servers: Vec<NameServer>,
    pub(super) resend_ms: u64,
    metric: Option<Metric<ResolverCounts>>,
    /// The index of the server that the next lookup begins with.
    next: Cell<usize>,
}

impl ServerRotation {
    pub(super) fn new(settings: ResolverSettings) -> Self {
        let servers = settings.servers.iter().copied().map(NameServer::new).collect();
        let metric = settings.zone.as_deref().map(Metric::named);
        Self { settings, servers, resend_ms: RESEND_MS, metric, next: Cell::new(0) }
    }

    /// This worker's counters, if lookups are counted.
    pub(super) fn counters(&self) -> Option<ResolverCounters<'static>> {
        self.metric.as_ref().map(Metric::own)
    }

    /// The index of the server that a new lookup begins with; each call returns the next one.
    pub(super) fn next_server(&self) -> usize {
        let server = self.next.get();
        self.next.set(self.after(server));
        server
    }

    /// The index of the server after this one.
    pub(super) fn after(&self, server: usize) -> usize {
        (server + 1) % self.servers.len()
    }
}
