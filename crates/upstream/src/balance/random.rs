//! `random`: by chance and weight; with `two`, the better of two.

use super::least_time;
use super::{Balance, MISSES_MAX, RefusedParameters, Round};
use crate::server::Server;
use crate::times::Until;

#[derive(Debug)]
pub(crate) struct RandomBalance {
    pub two: Option<Better>,
}

/// Which of two is better.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Better {
    /// The one with fewer requests in progress by weight.
    LeastConn,
    LeastTime(Until),
}

impl Balance for RandomBalance {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        let Some(better) = self.two else {
            return round.probe(|_, random| random.next());
        };
        if round.tier.peers.len() < 2 {
            return round.rotate(|_| true);
        }
        let mut first = None;
        while round.attempt.misses <= MISSES_MAX {
            let at = round.tier.by_chance();
            if first == Some(at) || !round.admits(at) {
                round.attempt.misses += 1;
                continue;
            }
            let Some(first) = first.replace(at) else { continue };
            return Some(better.of(first, at, round));
        }
        round.rotate(|_| true)
    }

    fn until(&self) -> Option<Until> {
        match self.two {
            Some(Better::LeastTime(until)) => Some(until),
            _ => None,
        }
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters { backup: true, slow_start: true }
    }
}

impl Better {
    fn of(self, first: usize, second: usize, round: &Round<'_>) -> usize {
        let load = |server: &Server| match self {
            Self::LeastConn => u64::from(server.in_progress()),
            Self::LeastTime(until) => least_time::estimate(server, until, round.ask.now_ms),
        };
        match round.compare(second, first, load).is_gt() {
            true => first,
            false => second,
        }
    }
}
