//! Times in buckets, the same for all that is measured.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::kind::BlockField;

/// The upper bounds in nanoseconds. Those of other formats are among them.
pub const BOUNDS: [u64; 21] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    75_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    7_500_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

/// One for each bound, and one for all that took longer.
pub const BUCKETS: usize = BOUNDS.len() + 1;

/// Times by bucket, and their sum.
pub enum Times {}

#[derive(Clone, Copy)]
pub struct Histogram<'a>(&'a [AtomicU64]);

impl Histogram<'_> {
    /// Counts a time in nanoseconds. Only for the worker that has the block.
    #[inline]
    pub fn record(self, time_ns: u64) {
        // Most times are short.
        let bucket = BOUNDS.iter().position(|bound| time_ns <= *bound).unwrap_or(BOUNDS.len());
        for (word, more) in [(&self.0[bucket], 1), (&self.0[BUCKETS], time_ns)] {
            word.store(word.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    /// The counts, bucket by bucket.
    pub fn counts(self) -> [u64; BUCKETS] {
        std::array::from_fn(|bucket| self.0[bucket].load(Relaxed))
    }

    /// How many times were recorded.
    pub fn count(self) -> u64 {
        self.counts().iter().sum()
    }

    pub fn sum_ns(self) -> u64 {
        self.0[BUCKETS].load(Relaxed)
    }
}

impl BlockField for Times {
    const WORDS: usize = BUCKETS + 1;
    type At<'a> = Histogram<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> Histogram<'_> {
        Histogram(words)
    }
}
