//! Simulated studies whose law is known.

use statistics::SplitMix;

use super::*;

const NUMBERS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
const STUDIES: u64 = 100;

/// Blocks whose machine drifts by up to a fifth, and whose turns differ by 4 %, as in the
/// simulations of effects.
fn blocks(law: ScalingLaw, seed: u64) -> ScalingBlocks {
    let mut random = SplitMix::new(seed);
    let block = |_| {
        let drift = 0.8 + 0.4 * random.unit();
        let rates = NUMBERS.map(|number| {
            let noise: f64 = (0..6).map(|_| random.unit() - 0.5).sum::<f64>() * 0.06;
            (law.rate(number) * drift * (1.0 + noise)).ln()
        });
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        (mean, rates.iter().map(|rate| rate - mean).collect())
    };
    ScalingBlocks((0..12).map(block).collect())
}

fn fits(contention: f64, coherence: f64) -> (ScalingLaw, Vec<CapacityFit>) {
    let law = ScalingLaw { first: 1000.0, contention, coherence };
    let fit = |seed| CapacityFit::of(&NUMBERS, &blocks(law, seed)).expect("a fit");
    (law, (0..STUDIES).map(fit).collect())
}

fn count(fits: &[CapacityFit], holds: impl Fn(&CapacityFit) -> bool) -> usize {
    fits.iter().filter(|fit| holds(fit)).count()
}

#[test]
fn intervals_contain_the_parameters_of_at_least_90_of_100_studies() {
    let (law, fits) = fits(0.03, 0.0005);
    let covered = [
        count(&fits, |fit| !fit.first.excludes(law.first)),
        count(&fits, |fit| !fit.contention.excludes(law.contention)),
        count(&fits, |fit| fit.coherence.is_some_and(|of| !of.excludes(law.coherence))),
        count(&fits, |fit| !fit.peak.excludes(law.peak())),
        count(&fits, |fit| !fit.highest.excludes(law.rate(law.peak()))),
    ];
    assert!(covered.iter().all(|covered| *covered >= 90), "{covered:?}");
    assert!(fits.iter().all(|fit| fit.fits() && fit.has_peak()));
}

#[test]
fn no_coherence_is_seen_where_there_is_none() {
    let (law, fits) = fits(0.3, 0.0);
    let claimed = count(&fits, |fit| fit.coherence.is_some_and(|of| of.low > 0.0));
    assert!(claimed <= 5, "{claimed}");
    let covered = count(&fits, |fit| !fit.contention.excludes(law.contention));
    assert!(covered >= 90, "{covered}");
}

/// A knee: the rate grows in proportion until the machine is full.
#[test]
fn rates_that_do_not_follow_the_law_are_not_extrapolated() {
    let block = |rates: [f64; 7]| {
        let logs = rates.map(f64::ln);
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (mean, logs.iter().map(|log| log - mean).collect())
    };
    let knee = ScalingBlocks(vec![block(NUMBERS.map(|number| number.min(8.0))); 12]);
    let fit = CapacityFit::of(&NUMBERS, &knee).expect("a fit");
    assert!(!fit.fits() && !fit.has_peak(), "{}", fit.miss);
}

#[test]
fn three_numbers_tell_contention_only() {
    let law = ScalingLaw { first: 1000.0, contention: 0.1, coherence: 0.0 };
    let mut blocks = blocks(law, 1);
    blocks.0.iter_mut().for_each(|block| block.1.truncate(3));
    let fit = CapacityFit::of(&NUMBERS[..3], &blocks).expect("a fit");
    assert!(fit.coherence.is_none() && !fit.has_peak());
    assert_eq!(fit.end(), 8.0);
}
