//! Cheap pseudo-random numbers, for spreading requests and checks.

/// Marsaglia's xorshift64*: fast, and good enough to share out requests.
#[derive(Debug)]
pub(crate) struct XorShift(u64);

impl Default for XorShift {
    /// Seeded as the standard library seeds its hash tables.
    fn default() -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        Self::seeded(RandomState::new().build_hasher().finish())
    }
}

impl XorShift {
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
