//! Smooth weighted round robin: with weights 5, 1, 1 it gives a a b a c a a.

use super::{Balance, Round};

/// In turn, by weight.
#[derive(Debug)]
pub(crate) struct RoundRobin;

impl Balance for RoundRobin {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        round.rotate(|_| true)
    }
}
