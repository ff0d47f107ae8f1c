//! The servers of a group as its balancer sees them: primaries, then backups.

use std::collections::HashMap;
use std::sync::Arc;

use crate::random::XorShift;
use crate::server::{Server, ServerStatus};
use crate::server_state::ServerState;

/// All servers. They change if names are resolved at run time, and by requests to the API.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// Changes with the servers, which makes the positions in an attempt invalid.
    pub version: u32,
    pub primary: Tier,
    pub backup: Tier,
}

/// Servers that are alternatives to each other.
#[derive(Debug, Default)]
pub(crate) struct Tier {
    pub peers: Vec<RotationPeer>,
    /// The sum of configured weights.
    pub total_weight: u64,
    /// The ring of a consistent hash, sorted; no other balancer has points.
    pub points: Vec<RingPoint>,
    pub random: XorShift,
}

/// A server and its state in the rotation.
#[derive(Debug)]
pub(crate) struct RotationPeer {
    pub server: Arc<Server>,
    pub current_weight: i64,
    /// The first server with the same text in the configuration: another address of its name.
    pub kin: u32,
}

/// A point on the ring of a consistent hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RingPoint {
    pub hash: u32,
    /// The [`RotationPeer::kin`] of its server.
    pub kin: u32,
}

impl Peers {
    /// Replaces the servers; those that stay keep their state in the rotation. `arrange` prepares
    /// each tier for the balancer.
    pub fn replace(
        &mut self,
        primary: &[Arc<Server>],
        backup: &[Arc<Server>],
        arrange: impl Fn(&mut Tier),
    ) {
        self.version = self.version.wrapping_add(1);
        for (tier, servers) in [(&mut self.primary, primary), (&mut self.backup, backup)] {
            tier.replace(servers);
            arrange(tier);
        }
    }

    /// Whether there is only one server, whose failures do not count.
    pub fn is_single(&self) -> bool {
        self.primary.peers.len() == 1 && self.backup.peers.is_empty()
    }

    /// How many servers a request may try.
    pub fn tries(&self) -> u32 {
        match self.is_single() {
            true => 1,
            false => self.primary.tries() + self.backup.tries(),
        }
    }

    /// All servers, primaries first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.primary.peers.iter().chain(&self.backup.peers).map(|peer| &peer.server)
    }
}

impl Tier {
    fn replace(&mut self, servers: &[Arc<Server>]) {
        // A server whose parameters changed is another one with the same state.
        let mut weights: HashMap<*const ServerState, i64> = HashMap::new();
        for peer in &self.peers {
            weights.insert(Arc::as_ptr(&peer.server.state), peer.current_weight);
        }
        let mut first: HashMap<&[u8], u32> = HashMap::new();
        self.peers.clear();
        for (at, server) in servers.iter().enumerate() {
            let current_weight = weights.get(&Arc::as_ptr(&server.state)).copied().unwrap_or(0);
            let kin = *first.entry(server.text()).or_insert(at as u32);
            self.peers.push(RotationPeer { server: server.clone(), current_weight, kin });
        }
        self.total_weight = servers.iter().map(|server| u64::from(server.terms.weight)).sum();
    }

    fn tries(&self) -> u32 {
        self.peers.iter().filter(|peer| peer.server.status() != ServerStatus::Down).count() as u32
    }

    /// The server whose share of the weights contains `point`.
    pub fn at_weight(&self, mut point: u64) -> usize {
        for (at, peer) in self.peers.iter().enumerate() {
            let weight = u64::from(peer.server.terms.weight);
            if point < weight {
                return at;
            }
            point -= weight;
        }
        0
    }

    /// A random server, in proportion to the weights.
    pub fn by_chance(&mut self) -> usize {
        let point = self.random.next() % self.total_weight.max(1);
        self.at_weight(point)
    }
}
