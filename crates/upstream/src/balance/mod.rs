//! Balancers choose one of the servers that can be used.
//!
//! Each has its own file. What it remembers between choices is stored in the tier and in the
//! attempt, so a balancer itself never changes. CONTRIBUTING.md says how to add one.

mod consistent_hash;
mod crc32;
mod hash;
mod ip_hash;
mod least_conn;
mod least_time;
mod random;
mod round_robin;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt::Debug;

use conf::Template;

use crate::attempt::Attempt;
use crate::peers::{RotationPeer, Tier};
use crate::random::XorShift;
use crate::server::Server;
use crate::times::Until;

pub(crate) use consistent_hash::ConsistentHash;
pub(crate) use hash::HashBalance;
pub(crate) use ip_hash::IpHash;
pub(crate) use least_conn::LeastConn;
pub(crate) use least_time::LeastTime;
pub(crate) use random::{Better, RandomBalance};
pub(crate) use round_robin::RoundRobin;

/// How often a hash or a random choice may hit a server that cannot be used; after that, servers
/// are taken in turn.
const MISSES_MAX: u32 = 20;

pub(crate) trait Balance: Debug + Send + Sync {
    /// The position of the server to use, which the round [admits](Round::admits).
    fn pick(&self, round: &mut Round<'_>) -> Option<usize>;

    /// A server is used because the request is bound to it.
    fn bind(&self, _round: &mut Round<'_>, _at: usize) {}

    /// Prepares a tier whose servers have changed.
    fn arrange(&self, _tier: &mut Tier) {}

    /// The text that is hashed.
    fn key(&self) -> Option<&Template> {
        None
    }

    /// The kind of time it needs.
    fn until(&self) -> Option<Until> {
        None
    }

    /// Whether it needs to know how long requests have been in progress.
    fn counts_inflight(&self) -> bool {
        false
    }

    /// Which parameters of `server` it rejects.
    fn refused(&self) -> RefusedParameters;
}

/// Parameters of `server` that are rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusedParameters {
    pub backup: bool,
    pub slow_start: bool,
}

/// The inputs of a choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The client's address, 4 or 16 bytes; anything else counts as no address.
    pub client: &'a [u8],
    /// The value of [`Group::key`](crate::Group::key).
    pub key: &'a [u8],
    /// The id that binds the request to a server: [`Sticky::id`](crate::sticky::Sticky::id).
    pub sticky: Option<&'a [u8]>,
    /// Now, by one clock for all workers.
    pub now_ms: u64,
}

/// One choice among the servers of one tier.
pub(crate) struct Round<'a> {
    pub tier: &'a mut Tier,
    /// The tier's first position, as the attempt counts.
    pub first: usize,
    pub attempt: &'a mut Attempt,
    pub ask: &'a Ask<'a>,
}

impl Round<'_> {
    /// Whether the server may be used for this request.
    pub fn admits(&self, at: usize) -> bool {
        self.admits_bound(at, false)
    }

    /// The same; `bound`: for a request that is bound to it.
    pub fn admits_bound(&self, at: usize, bound: bool) -> bool {
        let server = &self.tier.peers[at].server;
        !self.attempt.has_tried(self.first + at)
            && server.is_live(self.ask.now_ms, bound)
            && !server.is_full()
    }

    /// The server of that name, if it may be used: the first one only, as in nginx.
    pub fn bound(&self, name: &[u8]) -> Option<usize> {
        let at = self.tier.peers.iter().position(|peer| peer.server.sid() == name)?;
        self.admits_bound(at, true).then_some(at)
    }

    /// Smooth rotation among the servers that are admitted and fit: each gains its weight, and the
    /// one with the most pays the sum of the gains.
    pub fn rotate(&mut self, fits: impl Fn(&RotationPeer) -> bool) -> Option<usize> {
        let (best, total) = self.advance(fits);
        self.tier.peers[best?].current_weight -= total;
        best
    }

    /// Gives the servers that are admitted and fit their weight. Returns the one with the most, and
    /// the sum of the gains.
    fn advance(&mut self, fits: impl Fn(&RotationPeer) -> bool) -> (Option<usize>, i64) {
        let (mut best, mut total) = (None, 0);
        for at in 0..self.tier.peers.len() {
            if !self.admits(at) || !fits(&self.tier.peers[at]) {
                continue;
            }
            let peer = &mut self.tier.peers[at];
            let weight = peer.server.effective_weight(self.ask.now_ms);
            peer.server.state.recover();
            peer.current_weight += weight;
            total += weight;
            let ahead = peer.current_weight;
            if best.is_none_or(|best: usize| ahead > self.tier.peers[best].current_weight) {
                best = Some(at);
            }
        }
        (best, total)
    }

    /// The server that a hash selects, hashed again while that server is not admitted; after too
    /// many misses, the next in turn.
    pub fn probe(
        &mut self,
        mut hash: impl FnMut(&mut Attempt, &mut XorShift) -> u64,
    ) -> Option<usize> {
        if self.tier.peers.len() > 1 {
            while self.attempt.misses <= MISSES_MAX {
                let hash = hash(self.attempt, &mut self.tier.random);
                let at = self.tier.at_weight(hash % self.tier.total_weight);
                if self.admits(at) {
                    return Some(at);
                }
                self.attempt.misses += 1;
            }
        }
        self.rotate(|_| true)
    }

    /// The server with the least load by weight; among equals, the next in turn.
    pub fn least(&mut self, load: impl Fn(&Server) -> u64) -> Option<usize> {
        let (mut best, mut many) = (None, false);
        for at in (0..self.tier.peers.len()).filter(|at| self.admits(*at)) {
            let order = best.map_or(Ordering::Less, |best| self.compare(at, best, &load));
            match order {
                Ordering::Less => (best, many) = (Some(at), false),
                Ordering::Equal => many = true,
                Ordering::Greater => {}
            }
        }
        let best = best?;
        if !many {
            return Some(best);
        }
        let now_ms = self.ask.now_ms;
        let least = self.tier.peers[best].server.clone();
        // Requests end without the group's lock, so loads may differ by now.
        self.rotate(|peer| compare(&peer.server, &least, now_ms, &load).is_eq()).or(Some(best))
    }

    /// Which of two servers has more load by weight.
    pub fn compare(&self, one: usize, other: usize, load: impl Fn(&Server) -> u64) -> Ordering {
        let server = |at: usize| &*self.tier.peers[at].server;
        compare(server(one), server(other), self.ask.now_ms, load)
    }
}

fn compare(one: &Server, other: &Server, now_ms: u64, load: impl Fn(&Server) -> u64) -> Ordering {
    let weighed = |server, by: &Server| u128::from(load(server)) * by.ramp(now_ms) as u128;
    weighed(one, other).cmp(&weighed(other, one))
}
