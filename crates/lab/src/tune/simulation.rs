//! A simulated machine for tests: candidates with known gains, noise and drift.

use statistics::SplitMix;

use super::gain::TuneBlocks;

/// The noise of turns: a standard deviation of 4 %.
const NOISE: f64 = 0.04;
/// The drift of the machine's speed from one turn to the next within a block.
const DRIFT_OF_TURNS: f64 = 0.005;

/// The factor on a configuration's rate, from the gains of its candidates.
type SimulatedRate = fn(&[f64]) -> f64;

pub(super) struct SimulatedMachine {
    gains: Vec<f64>,
    rate: SimulatedRate,
    random: SplitMix,
    /// The number of turns taken.
    pub(super) turns: usize,
    /// The number of turns in which each candidate was measured alone.
    pub(super) measured: Vec<usize>,
}

impl SimulatedMachine {
    /// Candidates with these gains, which multiply.
    pub(super) fn new(gains: &[f64], seed: u64) -> Self {
        Self {
            gains: gains.to_vec(),
            rate: |gains| gains.iter().product(),
            random: SplitMix::new(seed),
            turns: 0,
            measured: vec![0; gains.len()],
        }
    }

    /// Candidates with the same effect: beside the best, the others add nothing.
    pub(super) fn of_substitutes(gains: &[f64], seed: u64) -> Self {
        let rate: SimulatedRate = |gains| gains.iter().copied().fold(1.0, f64::max);
        Self { rate, ..Self::new(gains, seed) }
    }

    /// Nearly normal noise with a standard deviation of 1.
    fn noise(&mut self) -> f64 {
        let sum: f64 = (0..6).map(|_| self.random.unit() - 0.5).sum();
        sum / 0.5f64.sqrt()
    }
}

impl TuneBlocks for SimulatedMachine {
    fn gains(&mut self, configurations: &[Vec<usize>]) -> Result<Vec<f64>, String> {
        // The machine's speed differs by up to a fifth from block to block.
        let mut drift = 0.8 + 0.4 * self.random.unit();
        let mut order: Vec<usize> = (0..configurations.len()).collect();
        self.random.shuffle(&mut order);
        let mut rates = vec![0.0; configurations.len()];
        for at in order {
            drift *= 1.0 + DRIFT_OF_TURNS * self.noise();
            let own: Vec<f64> = configurations[at].iter().map(|own| self.gains[*own]).collect();
            rates[at] = 5000.0 * drift * (self.rate)(&own) * (1.0 + NOISE * self.noise());
            self.turns += 1;
            if let [alone] = configurations[at][..] {
                self.measured[alone] += 1;
            }
        }
        Ok(rates[1..].iter().map(|rate| rate / rates[0]).collect())
    }
}
