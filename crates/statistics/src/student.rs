//! Ratios between measurements, and their uncertainty.
//!
//! Logarithms of the values are compared by Welch's t interval: the result is a ratio, equal
//! variances are not required, it is honest about two or three values (for which a bootstrap
//! interval is too narrow), and it needs no random numbers.

use crate::Interval;

/// The ratio of the geometric means, B's to A's. `None` if either has fewer than two values, or one
/// is not positive and finite.
pub fn ratio_of_means(a: &[f64], b: &[f64]) -> Option<Interval> {
    let (a, b) = (Logs::of(a)?, Logs::of(b)?);
    Some(exponentiated(b.mean - a.mean, margin(&a, &b)))
}

fn exponentiated(log: f64, margin: f64) -> Interval {
    Interval { value: log.exp(), low: (log - margin).exp(), high: (log + margin).exp() }
}

/// The geometric mean; `None` if a value is not positive and finite, or there are none.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs = logs(values)?;
    Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn logs(values: &[f64]) -> Option<Vec<f64>> {
    let usable = |value: &f64| *value > 0.0 && value.is_finite();
    (!values.is_empty() && values.iter().all(usable))
        .then(|| values.iter().map(|value| value.ln()).collect())
}

/// The properties of a sample for Welch's interval.
struct Logs {
    mean: f64,
    /// The variance of the mean.
    variance: f64,
    freedom: f64,
}

impl Logs {
    fn of(values: &[f64]) -> Option<Self> {
        let logs = logs(values).filter(|logs| logs.len() > 1)?;
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let freedom = count - 1.0;
        Some(Self { mean, variance: squares / freedom / count, freedom })
    }
}

fn margin(a: &Logs, b: &Logs) -> f64 {
    let variance = a.variance + b.variance;
    if variance == 0.0 {
        return 0.0;
    }
    // Welch and Satterthwaite.
    let freedom =
        variance.powi(2) / (a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom);
    t_95(freedom) * variance.sqrt()
}

/// Student's t, two-sided, 95 %, for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, //
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, //
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The quantile of Student's t for two-sided 95 % intervals, rounded up; above 30 degrees of
/// freedom exact to 0.001.
pub fn t_95(freedom: f64) -> f64 {
    let whole = freedom.floor().max(1.0);
    T_95.get(whole as usize - 1).copied().unwrap_or(1.96 + 2.4 / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 0.0005
    }

    /// scipy's `ttest_ind(log(b), log(a), equal_var=False)`: 1.0922, 1.0524 to 1.1334. It uses 5.42
    /// degrees of freedom, and ours 5, so that ours is slightly wider.
    #[test]
    fn ratios_of_means_are_those_of_scipy() {
        let (a, b) = ([100.0, 102.0, 98.0, 101.0], [110.0, 113.0, 107.0, 108.0]);
        let ratio = ratio_of_means(&a, &b).unwrap();
        assert!(near(ratio.value, 1.0922), "{ratio:?}");
        assert!(near(ratio.low, 1.0515) && near(ratio.high, 1.1344), "{ratio:?}");
        assert!(ratio.excludes(1.0));
        let about = ratio.about(1.0);
        assert!(near(about.low, 0.9628) && near(about.high, 1.0386), "{about:?}");
        assert!(!about.excludes(1.0));
    }

    #[test]
    fn too_few_or_invalid_values_have_no_interval() {
        assert_eq!(ratio_of_means(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(ratio_of_means(&[0.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn equal_values_have_no_noise() {
        let ratio = ratio_of_means(&[2.0, 2.0], &[4.0, 4.0]).unwrap();
        assert_eq!((ratio.low, ratio.high), (ratio.value, ratio.value));
        assert!(ratio.excludes(1.0));
        assert!(!ratio_of_means(&[3.0, 3.0], &[3.0, 3.0]).unwrap().excludes(1.0));
    }

    /// Two values each give a wide interval.
    #[test]
    fn few_values_give_a_wide_interval() {
        let ratio = ratio_of_means(&[100.0, 101.0], &[103.0, 104.0]).unwrap();
        assert!(!ratio.excludes(1.0), "{ratio:?}");
    }

    #[test]
    fn quantiles_of_t_are_exact() {
        for (freedom, t) in [(1.0, 12.706), (1.99, 12.706), (30.0, 2.042), (60.0, 2.0), (1e9, 1.96)]
        {
            assert!(near(t_95(freedom), t), "{freedom}");
        }
    }

    /// The interval contains the true ratio as often as stated, for samples as small as ours.
    #[test]
    fn the_interval_is_right_19_times_of_20() {
        let mut seed = 1_u64;
        let mut uniform = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / (1_u64 << 31) as f64
        };
        // The sum of twelve minus six is nearly normal.
        let mut sample = |scale: f64| {
            [(); 5].map(|()| (((0..12).map(|_| uniform()).sum::<f64>() - 6.0) * 0.1).exp() * scale)
        };
        let hits = (0..2000).filter(|_| {
            let ratio = ratio_of_means(&sample(10.0), &sample(15.0)).unwrap();
            (ratio.low..ratio.high).contains(&1.5)
        });
        let hits = hits.count();
        assert!((1880..1960).contains(&hits), "{hits} of 2000");
    }
}
