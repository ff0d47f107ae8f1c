//! The mean and the standard deviation of a histogram.

use hdrhistogram::Histogram;

/// Mean and standard deviation of recorded values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean; 0 without values.
    pub mean: f64,
    /// The standard deviation of a sample (n - 1); 0 with fewer than two values.
    pub stdev: f64,
    /// The share, 0 to 1, within one standard deviation of the mean; NaN without values.
    pub within: f64,
}

impl Spread {
    /// Each value counts as the middle of its bucket.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let count = histogram.len() as f64;
        let values = || {
            histogram.iter_recorded().map(|step| {
                let value = histogram.median_equivalent(step.value_iterated_to());
                (value as f64, step.count_at_value() as f64)
            })
        };
        let mean = histogram.mean();
        let squares: f64 = values().map(|(value, n)| (value - mean).powi(2) * n).sum();
        let stdev = if count < 2.0 { 0.0 } else { (squares / (count - 1.0)).sqrt() };
        let near = values().filter(|(value, _)| (value - mean).abs() <= stdev);
        let within = near.map(|(_, n)| n).sum::<f64>() / count;
        Self { mean, stdev, within }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::histogram::histogram;

    fn spread(values: &[u64]) -> Spread {
        let mut histogram = histogram();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        Spread::of(&histogram)
    }

    #[test]
    fn the_spread_is_that_computed_by_hand() {
        // Squares of 3, 1, 1 and 5: 36, over 3.
        let expected = Spread { mean: 5.0, stdev: 12.0_f64.sqrt(), within: 0.75 };
        assert_eq!(spread(&[2, 4, 4, 10]), expected);
    }

    #[test]
    fn one_value_and_no_value_have_a_spread() {
        assert_eq!(spread(&[7]), Spread { mean: 7.0, stdev: 0.0, within: 1.0 });
        let none = spread(&[]);
        assert_eq!((none.mean, none.stdev, none.within.is_nan()), (0.0, 0.0, true));
    }
}
