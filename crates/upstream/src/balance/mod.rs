//! Balancers: which of the servers that could be used is.
//!
//! One file each, which also holds how the configuration names it. Whatever they remember between
//! choices stands in the tier and in the attempt, so a balancer itself never changes.

mod round_robin;

use std::fmt::Debug;

use conf::Template;

use crate::attempt::Attempt;
use crate::group::Ask;
use crate::peers::{Peer, Tier};

pub(crate) use round_robin::RoundRobin;

/// A way of choosing.
pub(crate) trait Balance: Debug + Send + Sync {
    /// The position of the server to use, which the round [admits](Round::admits).
    fn pick(&self, round: &mut Round<'_>) -> Option<usize>;

    /// The text whose hash decides.
    fn key(&self) -> Option<&Template> {
        None
    }
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
        let server = &self.tier.peers[at].server;
        !self.attempt.has_tried(self.first + at)
            && server.is_live(self.ask.now_ms, false)
            && !server.is_full()
    }

    /// Takes the next in smooth rotation of those that are admitted and meet a condition: every one
    /// gains its weight, and the one that is furthest ahead pays what all have gained.
    pub fn rotate(&mut self, fits: impl Fn(&Peer) -> bool) -> Option<usize> {
        let (mut best, mut total) = (None, 0);
        for at in 0..self.tier.peers.len() {
            if !self.admits(at) || !fits(&self.tier.peers[at]) {
                continue;
            }
            let peer = &mut self.tier.peers[at];
            let weight = peer.server.effective_weight(self.ask.now_ms);
            peer.server.standing.recover();
            peer.current_weight += weight;
            total += weight;
            let ahead = peer.current_weight;
            if best.is_none_or(|best: usize| ahead > self.tier.peers[best].current_weight) {
                best = Some(at);
            }
        }
        let best = best?;
        self.tier.peers[best].current_weight -= total;
        Some(best)
    }
}
