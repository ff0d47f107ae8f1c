//! The bootstrap: how much would the median vary if the same measurement were repeated? Samples of
//! the same size are drawn from the values, with replacement; the interval contains nearly all of
//! their medians.
//!
//! For few values the plain percentile interval is too narrow. It is widened as Hesterberg proposes
//! ("What Teachers Should Know About the Bootstrap", 2015, section 4.1): by Student's t, and by the
//! bias of a sample's variance. It is also never narrower than the exact interval between two of
//! the ordered values, which is valid for any distribution: missing an effect is better than
//! inventing one.

use crate::order::of_sorted;
use crate::student::t_two_sided;
use crate::{Interval, SplitMix, median};

const SAMPLES: usize = 2000;

/// The usual probability that an interval is wrong.
const ERROR: f64 = 0.05;

/// Minimum number of values for an interval.
const VALUES_MIN: usize = 3;

/// The median with its 95 % bootstrap interval; `None` for fewer than three values, or if one is
/// not finite. Deterministic for the same values and seed.
pub fn median_interval(values: &[f64], seed: u64) -> Option<Interval> {
    median_interval_at(values, seed, ERROR)
}

/// The same for another probability that the interval is wrong.
pub fn median_interval_at(values: &[f64], seed: u64, error: f64) -> Option<Interval> {
    if values.len() < VALUES_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let medians = medians_of_samples(values, &mut SplitMix::new(seed));
    let Interval { value, low, high } = around(median(values), medians, values.len(), error);
    let exact = exact_interval(values, error);
    Some(Interval { value, low: low.min(exact.0), high: high.max(exact.1) })
}

/// The interval of an estimate from `count` values, made of the estimates of bootstrap samples.
pub fn interval_of_samples(value: f64, samples: Vec<f64>, count: usize) -> Interval {
    around(value, samples, count, ERROR)
}

/// The places of the values of each bootstrap sample.
pub fn resampled(count: usize, samples: usize, seed: u64) -> impl Iterator<Item = Vec<usize>> {
    let mut random = SplitMix::new(seed);
    (0..samples).map(move |_| (0..count).map(|_| random.below(count)).collect())
}

fn around(value: f64, mut samples: Vec<f64>, count: usize, error: f64) -> Interval {
    samples.sort_by(f64::total_cmp);
    let tail = tail(count, error);
    Interval { value, low: of_sorted(&samples, tail), high: of_sorted(&samples, 1.0 - tail) }
}

/// The innermost two ordered values, at equal distance from both ends, that enclose the median with
/// a probability of at least `1 - error`: each value is equally likely above it and below. For too
/// few values (fewer than six for 95 %), the outermost.
fn exact_interval(values: &[f64], error: f64) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // The probabilities that exactly `below` values, and at most `below` values, are below the
    // median.
    // The first as a logarithm, because for 1,075 values it is too small for a number.
    let mut exactly_ln = 0.5f64.ln() * count as f64;
    let (mut at_most, mut below) = (exactly_ln.exp(), 0);
    while at_most * 2.0 <= error {
        exactly_ln += ((count - below) as f64 / (below + 1) as f64).ln();
        at_most += exactly_ln.exp();
        below += 1;
    }
    let place = below.saturating_sub(1);
    (sorted[place], sorted[count - 1 - place])
}

/// The medians of all samples.
fn medians_of_samples(values: &[f64], random: &mut SplitMix) -> Vec<f64> {
    let mut sample = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        sample.iter_mut().for_each(|value| *value = values[random.below(values.len())]);
        sample.sort_by(f64::total_cmp);
        medians.push(of_sorted(&sample, 0.5));
    }
    medians
}

/// The proportion of estimates beyond each end of the interval.
fn tail(count: usize, error: f64) -> f64 {
    let count = count as f64;
    normal_tail((count / (count - 1.0)).sqrt() * t_two_sided(error, count - 1.0))
}

/// The proportion of the normal distribution beyond `z`, which is positive (Abramowitz and Stegun,
/// 26.2.17; exact to 1e-7).
fn normal_tail(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Efron and Tibshirani, "An Introduction to the Bootstrap", table 2.2: for the seven treated
    /// mice, the bootstrap estimate of the median's standard error is 37.83.
    #[test]
    fn the_standard_error_of_a_published_example() {
        let mice = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];
        let medians = medians_of_samples(&mice, &mut SplitMix::new(1));
        let count = medians.len() as f64;
        let mean = medians.iter().sum::<f64>() / count;
        let squares: f64 = medians.iter().map(|median| (median - mean).powi(2)).sum();
        let error = (squares / (count - 1.0)).sqrt();
        assert!((error - 37.83).abs() < 1.0, "{error}");
    }

    /// From the binomial distribution: of 8 values the first and the last, of 10 the 2nd and the
    /// 9th, of 20 the 6th and the 15th, of 40 the 14th and the 27th.
    #[test]
    fn exact_intervals_follow_the_binomial_distribution() {
        let cases = [(3, 1.0), (8, 1.0), (10, 2.0), (20, 6.0), (40, 14.0), (10_000, 4902.0)];
        for (count, first) in cases {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let last = f64::from(count) + 1.0 - first;
            assert_eq!(exact_interval(&values, 0.05), (first, last), "{count}");
        }
    }

    #[test]
    fn tails_of_the_normal_distribution_are_exact() {
        for (z, tail) in [(1.0, 0.158_655_3), (1.959_964, 0.025), (3.0, 0.001_349_9)] {
            assert!((normal_tail(z) - tail).abs() < 2e-7, "{z}");
        }
    }

    /// At least 95 of 100 intervals contain the true median, here of values with outliers, like
    /// measurements on a shared machine.
    #[test]
    fn the_interval_contains_the_median_as_often_as_stated() {
        let mut random = SplitMix::new(7);
        for count in [8, 20] {
            let covered = (0..200).filter(|round| {
                let values: Vec<f64> = (0..count).map(|_| noise(&mut random)).collect();
                !median_interval(&values, *round).unwrap().excludes(0.0)
            });
            let share = covered.count() as f64 / 200.0;
            assert!(share >= 0.95, "{share} of {count}");
        }
    }

    /// Symmetric about 0; one in ten values is ten times as far away.
    fn noise(random: &mut SplitMix) -> f64 {
        let spread = if random.below(10) == 0 { 10.0 } else { 1.0 };
        let sum: f64 = (0..6).map(|_| random.unit() - 0.5).sum();
        sum * spread
    }

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(median_interval(&values, 3), median_interval(&values, 3));
        assert_eq!(median_interval(&values[..2], 3), None);
        assert_eq!(median_interval(&[1.0, f64::NAN, 2.0], 3), None);
    }
}
