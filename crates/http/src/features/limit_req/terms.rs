//! The rate of a zone, and the part of it that this machine enforces.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use session::store::StoreAddress;

use super::rates::{REQUEST, Rates};
use crate::keyed::KeyedZone;

/// A zone with its rate.
pub(super) type RateZone = KeyedZone<Rates, RateTerms>;

/// The rate of a zone, and who enforces it.
pub(super) struct RateTerms {
    /// In thousandths of requests per second.
    pub(super) rate: u64,
    pub(super) store: Option<StoreAddress>,
    /// The number of nodes of which each enforces its share; 1 while sums are exchanged.
    nodes: AtomicU32,
    /// The largest burst of a limit with the zone.
    burst_max: AtomicU64,
}

impl RateTerms {
    pub(super) fn new(rate: u64) -> Self {
        let (nodes, burst_max) = (AtomicU32::new(1), AtomicU64::new(0));
        Self { rate, store: None, nodes, burst_max }
    }

    /// Each of so many nodes enforces its share from now on.
    pub(super) fn share_by(&self, nodes: u32) {
        self.nodes.store(nodes, Relaxed);
    }

    pub(super) fn note_burst(&self, burst: u64) {
        self.burst_max.fetch_max(burst, Relaxed);
    }

    /// The rate that this node enforces now.
    pub(super) fn rate_now(&self) -> u64 {
        match self.nodes.load(Relaxed) {
            0 | 1 => self.rate,
            nodes => (self.rate / u64::from(nodes)).max(1),
        }
    }

    /// The burst that this node allows now: its share, but one request if there is a burst.
    pub(super) fn burst_now(&self, burst: u64) -> u64 {
        match self.nodes.load(Relaxed) {
            0 | 1 => burst,
            nodes => (burst / u64::from(nodes)).max(burst.min(REQUEST)),
        }
    }

    /// The most that the requests of others fill a bucket with: what the nodes can admit in a
    /// second.
    pub(super) fn excess_max(&self, nodes: u32) -> u64 {
        let of_node = self.burst_max.load(Relaxed).saturating_add(self.rate);
        of_node.saturating_mul(u64::from(nodes.max(2)))
    }
}
