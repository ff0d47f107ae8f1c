//! `least_time`: the server with the shortest expected time for its requests in progress, by the
//! mean time of its replies and its weight; among equals, in turn.

use super::{Balance, RefusedParameters, Round};
use crate::server::Server;
use crate::times::Until;

#[derive(Debug)]
pub(crate) struct LeastTime {
    pub until: Until,
    /// Whether requests in progress that already take longer count, too.
    pub inflight: bool,
}

/// Times within one step count as equal, so that servers that are about as fast take turns.
const STEP_MS: u64 = 20;
/// Slower times than this count as this one.
const TIME_MAX_MS: u64 = 5000;

impl Balance for LeastTime {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        let (until, now_ms) = (self.until, round.ask.now_ms);
        if self.inflight {
            for at in 0..round.tier.peers.len() {
                if round.admits(at) {
                    round.tier.peers[at].server.state.times.look_at_inflight(now_ms);
                }
            }
        }
        round.least(|server| estimate(server, until, now_ms))
    }

    fn until(&self) -> Option<Until> {
        Some(self.until)
    }

    fn counts_inflight(&self) -> bool {
        self.inflight
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters::default()
    }
}

/// The expected time for the server's requests in progress and one more.
pub(super) fn estimate(server: &Server, until: Until, now_ms: u64) -> u64 {
    let state = &server.state;
    let (unchecked_ms, timeout_ms) =
        (state.unchecked_ms(now_ms), server.terms.failure_policy.fail_timeout_ms);
    let mut time_ms = state.times.mean_ms(until);
    // A slow server gets another chance once in fail_timeout: half the time, then a quarter.
    if unchecked_ms > timeout_ms {
        let halvings = (unchecked_ms / 1000) / (timeout_ms / 1000 + 1);
        time_ms = u32::try_from(halvings).ok().and_then(|n| time_ms.checked_shr(n)).unwrap_or(0);
    }
    time_ms = time_ms.max(state.times.inflight_ms());
    let step_ms = match time_ms {
        0..=TIME_MAX_MS => time_ms + STEP_MS - time_ms % STEP_MS,
        _ => TIME_MAX_MS,
    };
    step_ms * (1 + u64::from(server.in_progress()))
}
