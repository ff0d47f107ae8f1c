//! `least_conn`: the server with the fewest requests in progress by weight; among equals, in turn.

use super::{Balance, RefusedParameters, Round};

/// Fewest requests in progress.
#[derive(Debug)]
pub(crate) struct LeastConn;

impl Balance for LeastConn {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        round.least(|server| u64::from(server.in_progress()))
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters::default()
    }
}
