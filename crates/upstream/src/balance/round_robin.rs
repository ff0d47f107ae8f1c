//! Smooth weighted round robin: with weights 5, 1, 1 it gives a a b a c a a.

use super::{Balance, RefusedParameters, Round};
use crate::server::WEIGHT_SCALE;

/// In turn, by weight.
#[derive(Debug)]
pub(crate) struct RoundRobin;

impl Balance for RoundRobin {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        round.rotate(|_| true)
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters::default()
    }

    /// A server that is given requests bound to it pays for them in the rotation, but runs up no
    /// debt that would keep it out for long.
    fn bind(&self, round: &mut Round<'_>, at: usize) {
        let peer = &round.tier.peers[at];
        let others = round.tier.total_weight as i64 - i64::from(peer.server.terms.weight);
        if peer.current_weight > -others * WEIGHT_SCALE {
            let (_, total) = round.advance(|_| true);
            round.tier.peers[at].current_weight -= total;
        }
    }
}
