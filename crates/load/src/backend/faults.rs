//! Injected failures and their frequency.
//!
//! The random numbers of a request depend only on its number and the seed, so that the same of the
//! first thousand requests fail, however many threads and connections there are.

use std::time::Duration;

/// Shares of requests that fail or are delayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FaultInjection {
    /// Shares of requests that fail, each in one way only.
    pub(super) shares: Vec<(f64, RequestEnd)>,
    /// Shares of requests that are delayed, and the delays.
    pub(super) delays: Vec<(f64, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    Answer,
    Error,
    /// The connection is closed before the first byte of the reply.
    Disconnect,
    /// The connection is closed in the middle of the reply's body.
    Cut,
    /// The connection is reset before the first byte of the reply.
    Reset,
}

impl FaultInjection {
    pub(super) fn outcome(&self, random: &mut RequestRandom) -> RequestEnd {
        if self.shares.is_empty() {
            return RequestEnd::Answer;
        }
        pick(&self.shares, random).unwrap_or(RequestEnd::Answer)
    }

    pub(super) fn delay(&self, random: &mut RequestRandom) -> Duration {
        if self.delays.is_empty() {
            return Duration::ZERO;
        }
        pick(&self.delays, random).unwrap_or_default()
    }
}

/// One of the shares, or `None` for the rest.
fn pick<T: Copy>(shares: &[(f64, T)], random: &mut RequestRandom) -> Option<T> {
    let mut left = random.draw();
    for &(share, what) in shares {
        if left < share {
            return Some(what);
        }
        left -= share;
    }
    None
}

/// The pseudo-random numbers of one request (SplitMix64).
pub(super) struct RequestRandom(u64);

/// SplitMix64's step: odd, and 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl RequestRandom {
    /// The numbers of the request with this number.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)).wrapping_add(number)))
    }

    /// A number from 0 to just below 1.
    pub(super) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(STEP);
        // A double holds 53 bits exactly.
        (mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u64 = 100_000;

    fn fates(seed: u64) -> Vec<RequestEnd> {
        let shares = vec![(0.1, RequestEnd::Error), (0.01, RequestEnd::Cut)];
        let faults = FaultInjection { shares, delays: Vec::new() };
        (0..MANY).map(|number| faults.outcome(&mut RequestRandom::of(seed, number))).collect()
    }

    #[test]
    fn outcomes_have_their_shares() {
        let count = |outcome| fates(1).iter().filter(|one| **one == outcome).count();
        assert!(
            (9_700..10_300).contains(&count(RequestEnd::Error)),
            "{}",
            count(RequestEnd::Error)
        );
        assert!((900..1_100).contains(&count(RequestEnd::Cut)), "{}", count(RequestEnd::Cut));
        assert_eq!(count(RequestEnd::Reset), 0);
    }

    #[test]
    fn outcomes_depend_on_the_seed() {
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
    }

    #[test]
    fn a_share_of_one_applies_to_all() {
        let second = Duration::from_secs(1);
        let faults =
            FaultInjection { shares: vec![(1.0, RequestEnd::Reset)], delays: vec![(1.0, second)] };
        for number in 0..1000 {
            let random = &mut RequestRandom::of(0, number);
            assert_eq!(faults.outcome(random), RequestEnd::Reset);
            assert_eq!(faults.delay(random), second);
        }
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mean =
            (0..MANY).map(|number| RequestRandom::of(7, number).draw()).sum::<f64>() / MANY as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
