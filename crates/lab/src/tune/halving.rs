//! Successive halving: finds the candidates that gain something, and spends few turns on the
//! others.
//!
//! All candidates are measured against the baseline, block by block. After each round the worse
//! half by median is dropped, so that the remaining ones get more blocks. A candidate that is sure
//! to gain is never dropped; one that is sure to lose is dropped at once. The winners are not
//! final: of many candidates without effect, some seem to have one by chance
//! ([`confirmation`](super::confirmation)).

use super::gain::{BLOCKS_MIN, GainSamples, TuneBlocks, TuneEffect};

/// The result of a race.
#[derive(Debug)]
pub struct HalvingResult {
    /// The candidates that are sure to gain, the best first.
    pub winners: Vec<TuneEffect>,
    /// The largest gain that another candidate may have, at the upper end of its interval; `None`
    /// if all others lose, or if one has too few blocks for an interval.
    pub others_max: Option<f64>,
}

/// Lets the candidates `0..count` race within a number of turns. A block takes one turn for each
/// remaining candidate, and one for the baseline.
pub fn halve(
    count: usize,
    turns: usize,
    blocks: &mut dyn TuneBlocks,
) -> Result<HalvingResult, String> {
    let mut race = HalvingRace {
        alive: (0..count).collect(),
        samples: vec![GainSamples::default(); count],
        turns,
    };
    let rounds = rounds(count);
    for left in (1..=rounds).rev() {
        race.round(race.turns / left, blocks)?;
        if left > 1 {
            race.drop_half();
        }
    }
    let winners = race.winners();
    Ok(HalvingResult { others_max: race.others_max(&winners), winners })
}

/// The number of rounds until the last two candidates are left.
fn rounds(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros().max(1) as usize
}

/// The fewest turns with which [`halve`] can reach a verdict on each candidate.
pub fn turns_min(count: usize) -> usize {
    rounds(count) * BLOCKS_MIN * (count + 1)
}

struct HalvingRace {
    alive: Vec<usize>,
    /// The samples of each candidate, the dropped ones included.
    samples: Vec<GainSamples>,
    /// The turns left.
    turns: usize,
}

impl HalvingRace {
    /// Measures as many blocks as fit into a number of turns.
    fn round(&mut self, turns: usize, blocks: &mut dyn TuneBlocks) -> Result<(), String> {
        let end = self.turns.saturating_sub(turns);
        while !self.alive.is_empty() && self.turns > end + self.alive.len() {
            self.block(blocks)?;
            let samples = &self.samples;
            self.alive.retain(|candidate| !samples[*candidate].is_surely_worse());
        }
        Ok(())
    }

    fn block(&mut self, blocks: &mut dyn TuneBlocks) -> Result<(), String> {
        let own = self.alive.iter().map(|candidate| vec![*candidate]);
        let configurations: Vec<Vec<usize>> = [Vec::new()].into_iter().chain(own).collect();
        self.turns -= configurations.len();
        let gains = blocks.gains(&configurations)?;
        for (candidate, gain) in self.alive.iter().zip(gains) {
            self.samples[*candidate].add(gain);
        }
        Ok(())
    }

    /// Drops the worse half, except candidates that are sure to gain.
    fn drop_half(&mut self) {
        let samples = &self.samples;
        let mut by_median = self.alive.clone();
        by_median.sort_by(|a, b| samples[*a].median().total_cmp(&samples[*b].median()));
        by_median.truncate(self.alive.len() / 2);
        by_median.retain(|candidate| samples[*candidate].sure_gain(*candidate).is_none());
        self.alive.retain(|candidate| !by_median.contains(candidate));
    }

    fn others_max(&self, winners: &[TuneEffect]) -> Option<f64> {
        let is_other = |own: &usize| winners.iter().all(|winner| winner.candidate != *own);
        let others = (0..self.samples.len()).filter(is_other);
        let may_gain = others.filter(|own| !self.samples[*own].is_surely_worse());
        let highs: Option<Vec<f64>> =
            may_gain.map(|own| Some(self.samples[own].effect(own)?.gain.high)).collect();
        highs?.into_iter().reduce(f64::max)
    }

    fn winners(&self) -> Vec<TuneEffect> {
        let sure = self.alive.iter().filter_map(|own| self.samples[*own].sure_gain(*own));
        let mut winners: Vec<TuneEffect> = sure.collect();
        winners.sort_by(|a, b| b.gain.value.total_cmp(&a.gain.value));
        winners
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::simulation::SimulatedMachine;

    #[test]
    fn large_effects_come_out_sorted() {
        let mut machine = SimulatedMachine::new(&[1.0, 1.4, 0.6, 1.2], 3);
        let winners = halve(4, 300, &mut machine).unwrap().winners;
        let candidates: Vec<usize> = winners.iter().map(|winner| winner.candidate).collect();
        assert_eq!(candidates[..2], [1, 3]);
        assert!(winners[0].gain.low > 1.3 && winners[0].gain.high < 1.5, "{winners:?}");
        assert!(machine.turns <= 300);
    }

    /// A candidate that surely loses gets no turns after the first blocks; the others share them.
    #[test]
    fn the_worst_are_dropped_at_once() {
        let mut machine = SimulatedMachine::new(&[0.5, 0.5, 0.5, 0.5, 1.1], 1);
        halve(5, 600, &mut machine).unwrap();
        assert_eq!(machine.measured[..4], [BLOCKS_MIN; 4]);
        assert!(machine.measured[4] > 200, "{:?}", machine.measured);
    }

    /// More than half of the candidates gain: none of these is dropped.
    #[test]
    fn candidates_sure_to_gain_stay() {
        let mut machine = SimulatedMachine::new(&[1.3; 6], 1);
        assert_eq!(halve(6, 600, &mut machine).unwrap().winners.len(), 6);
    }

    #[test]
    fn half_of_the_others_is_dropped_each_round() {
        let mut machine = SimulatedMachine::new(&[1.0; 16], 5);
        halve(16, 800, &mut machine).unwrap();
        machine.measured.sort_unstable();
        let longest = machine.measured[15];
        assert!(machine.measured[7] <= 800 / 4 / 17, "{:?}", machine.measured);
        assert!(longest > 60, "{:?}", machine.measured);
    }

    #[test]
    fn too_few_turns_find_nothing() {
        let mut machine = SimulatedMachine::new(&[], 1);
        assert_eq!(halve(0, 100, &mut machine).unwrap().winners, []);
        let mut machine = SimulatedMachine::new(&[1.5], 1);
        let few = halve(1, 5, &mut machine).unwrap();
        assert_eq!((few.winners, few.others_max), (Vec::new(), None), "too few turns");
        assert_eq!((rounds(1), rounds(2), rounds(3), rounds(16), rounds(17)), (1, 1, 2, 4, 5));
    }

    #[test]
    fn invalid_gains_do_not_count() {
        struct Broken;
        impl TuneBlocks for Broken {
            fn gains(&mut self, configurations: &[Vec<usize>]) -> Result<Vec<f64>, String> {
                let gain = |own: &Vec<usize>| if own == &[0] { f64::NAN } else { 1.5 };
                Ok(configurations[1..].iter().map(gain).collect())
            }
        }
        let winners = halve(2, 100, &mut Broken).unwrap().winners;
        assert_eq!(winners.iter().map(|winner| winner.candidate).collect::<Vec<_>>(), [1]);
    }
}
