//! The servers of a group as its balancer sees them: primaries, then backups.

use std::sync::Arc;

use crate::server::{Server, State};

/// All servers. Changed only where names are resolved at run time.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// Changes with the servers: what an attempt remembers by position is void then.
    pub version: u32,
    pub primary: Tier,
    pub backup: Tier,
}

/// Servers that are alternatives to each other.
#[derive(Debug, Default)]
pub(crate) struct Tier {
    pub peers: Vec<Peer>,
    /// The sum of configured weights.
    pub total_weight: u64,
    /// The state of the group's random numbers.
    pub random: Random,
}

/// A server with its place in the rotation.
#[derive(Debug)]
pub(crate) struct Peer {
    pub server: Arc<Server>,
    pub current_weight: i64,
}

impl Tier {
    pub fn new(servers: Vec<Arc<Server>>) -> Self {
        let total_weight = servers.iter().map(|server| u64::from(server.terms.weight)).sum();
        let peer = |server| Peer { server, current_weight: 0 };
        let peers = servers.into_iter().map(peer).collect();
        Self { peers, total_weight, random: Random::default() }
    }

    /// How many of them a request may be tried at.
    fn tries(&self) -> u32 {
        self.peers.iter().filter(|peer| peer.server.state() != State::Down).count() as u32
    }

    /// The server whose part of the weights `point` falls into.
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
}

impl Peers {
    pub fn new(primary: Vec<Arc<Server>>, backup: Vec<Arc<Server>>) -> Self {
        Self { version: 0, primary: Tier::new(primary), backup: Tier::new(backup) }
    }

    /// Whether there is no choice, so that failures are not held against the one server.
    pub fn is_single(&self) -> bool {
        self.primary.peers.len() == 1 && self.backup.peers.is_empty()
    }

    /// How many servers a request may be tried at.
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

/// Marsaglia's xorshift64*: fast, and good enough to share out requests.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Default for Random {
    /// Seeded by the system, as the standard library seeds its hash tables.
    fn default() -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        Self::seeded(RandomState::new().build_hasher().finish())
    }
}

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }
}
