//! Gains, and when they are certain.
//!
//! A gain is a ratio of two turns of the same block in which more is better; disturbances by the
//! machine affect both turns alike. Verdicts use the confidence interval of the median.

use statistics::{Interval, median, median_interval};

/// The fewest blocks for a verdict.
pub(super) const BLOCKS_MIN: usize = 8;

/// The seed of the bootstrap samples; fixed, so that the same measurements give the same result.
const SEED: u64 = 1;

/// The gain of a configuration that fails although the user's own does not.
pub const FAILED: f64 = 0.0;

/// Measures configurations, block by block.
pub trait TuneBlocks {
    /// Measures one more block: one turn of each configuration, in any order. A configuration is a
    /// list of the numbers of its candidates; the empty one is the user's own. Returns the gains of
    /// all but the first over the first: ratios of the goal's figure in which more is better,
    /// [`FAILED`] if a configuration has errors that the user's own does not have, NaN if the first
    /// fails.
    fn gains(&mut self, configurations: &[Vec<usize>]) -> Result<Vec<f64>, String>;
}

/// The measured gain of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneEffect {
    /// The candidate's number.
    pub candidate: usize,
    /// The gain; 1 is no effect.
    pub gain: Interval,
    /// The number of blocks in which it was measured.
    pub blocks: usize,
}

/// The gains of one candidate, block by block.
#[derive(Clone, Debug, Default)]
pub(super) struct GainSamples {
    gains: Vec<f64>,
    /// Whether a turn failed. If so the candidate never gains: its good turns would be a selection.
    has_failed: bool,
}

impl GainSamples {
    /// Adds a gain; values that are not ratios are left out.
    pub(super) fn add(&mut self, gain: f64) {
        self.has_failed |= gain == FAILED;
        if gain.is_finite() && gain > 0.0 {
            self.gains.push(gain);
        }
    }

    /// The median; 0, which sorts last, without samples and after a failure.
    pub(super) fn median(&self) -> f64 {
        if self.gains.is_empty() || self.has_failed { 0.0 } else { median(&self.gains) }
    }

    pub(super) fn effect(&self, candidate: usize) -> Option<TuneEffect> {
        let gain = median_interval(&self.gains, SEED)?;
        Some(TuneEffect { candidate, gain, blocks: self.gains.len() })
    }

    /// The effect if its interval lies above 1.
    pub(super) fn sure_gain(&self, candidate: usize) -> Option<TuneEffect> {
        let others = self.gains.iter().filter(|gain| **gain <= 1.0).count();
        let effect =
            if self.is_sure(others) && !self.has_failed { self.effect(candidate) } else { None };
        effect.filter(|effect| effect.gain.low > 1.0)
    }

    /// Whether the interval lies below 1, or a turn failed.
    pub(super) fn is_surely_worse(&self) -> bool {
        let others = self.gains.iter().filter(|gain| **gain >= 1.0).count();
        let is_worse =
            || self.is_sure(others) && self.effect(0).is_some_and(|effect| effect.gain.high < 1.0);
        self.has_failed || is_worse()
    }

    /// Whether the interval can exclude 1 with this number of samples on the other side. The
    /// interval is never narrower than the exact one of the sign test, which is much quicker to
    /// compute.
    fn is_sure(&self, others: usize) -> bool {
        let count = self.gains.len();
        count >= BLOCKS_MIN && 2.0 * at_most(others, count) <= 0.05
    }
}

/// The probability of at most `heads` heads in `throws` throws of a coin.
fn at_most(heads: usize, throws: usize) -> f64 {
    let mut exactly = 0.5f64.powi(throws as i32);
    let mut sum = exactly;
    for below in 0..heads.min(throws) {
        exactly *= (throws - below) as f64 / (below + 1) as f64;
        sum += exactly;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(gains: impl IntoIterator<Item = f64>) -> GainSamples {
        let mut samples = GainSamples::default();
        gains.into_iter().for_each(|gain| samples.add(gain));
        samples
    }

    #[test]
    fn verdicts_follow_from_the_interval() {
        let better = samples((0..20).map(|at| 1.05 + f64::from(at % 5) * 0.01));
        assert!(better.sure_gain(0).is_some() && !better.is_surely_worse());
        let worse = samples((0..20).map(|at| 0.9 + f64::from(at % 5) * 0.01));
        assert!(worse.sure_gain(0).is_none() && worse.is_surely_worse());
        let none = samples((0..20).map(|at| if at % 2 == 0 { 1.1 } else { 0.9 }));
        assert!(none.sure_gain(0).is_none() && !none.is_surely_worse());
    }

    #[test]
    fn one_failure_outweighs_all_good_turns() {
        let mut fast = samples([1.5; 20]);
        fast.add(FAILED);
        assert!(fast.sure_gain(0).is_none() && fast.is_surely_worse());
        assert_eq!(fast.median(), 0.0);
    }

    #[test]
    fn few_samples_give_no_verdict() {
        let few = samples([1.5; BLOCKS_MIN - 1]);
        assert!(few.sure_gain(0).is_none());
        assert!(samples([1.5; BLOCKS_MIN]).sure_gain(0).is_some());
        assert!(samples([f64::NAN, f64::INFINITY]).effect(0).is_none());
        assert_eq!(samples([]).median(), 0.0);
    }

    /// By the binomial distribution: of 40 throws, 13 or fewer are heads with a probability of 1.9
    /// %.
    #[test]
    fn the_coin_has_a_binomial_distribution() {
        assert!((at_most(13, 40) - 0.0192).abs() < 1e-4);
        assert!((at_most(0, 8) - 1.0 / 256.0).abs() < 1e-12);
        assert!((at_most(8, 8) - 1.0).abs() < 1e-12);
    }
}
