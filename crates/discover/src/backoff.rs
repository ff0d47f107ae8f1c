//! How long to wait after failures: longer each time, up to a bound, and never in step with others.

use std::hash::{BuildHasher, RandomState};

#[derive(Clone, Debug)]
pub struct Backoff {
    first_ms: u64,
    most_ms: u64,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub fn new(first_ms: u64, most_ms: u64, seed: u64) -> Self {
        Self { first_ms, most_ms, failures: 0, random: seed | 1 }
    }

    /// The time after one more failure: between half and all of what doubles each time.
    pub fn failed(&mut self) -> u64 {
        let whole = self.first_ms.saturating_mul(1 << self.failures.min(20)).min(self.most_ms);
        self.failures = self.failures.saturating_add(1);
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        whole / 2 + self.random % (whole / 2 + 1)
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// A number that other processes do not have.
pub fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::new(100, 5000, 7);
        for whole in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let wait = backoff.failed();
            assert!((whole / 2..=whole).contains(&wait), "{whole}: {wait}");
        }
        backoff.succeeded();
        assert!(backoff.failed() <= 100);
        assert_ne!(Backoff::new(1000, 5000, 8).failed(), Backoff::new(1000, 5000, 18).failed());
    }
}
