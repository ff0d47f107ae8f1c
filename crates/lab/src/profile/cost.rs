//! Samples as CPU time per request, and differences between two profiles.

use super::ProfileRecord;

/// How surely a difference is no accident of sampling: at three standard errors, one function in
/// 370 that do not differ seems to.
const STANDARD_ERRORS: f64 = 3.0;

/// The worth of a sample.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProfileScale {
    us_of_a_sample: f64,
}

/// How much more CPU time per request a part of the row takes than that of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostDifference {
    pub(crate) us: f64,
    /// The largest error that sampling is likely to have.
    pub(crate) error_us: f64,
}

impl ProfileScale {
    /// All samples together are the CPU time per request.
    pub(crate) fn of(profile: &ProfileRecord, cpu_us: f64) -> Self {
        Self { us_of_a_sample: cpu_us / profile.samples().max(1) as f64 }
    }

    pub(crate) fn us(self, samples: u64) -> f64 {
        samples as f64 * self.us_of_a_sample
    }

    fn variance(self, samples: u64) -> f64 {
        // Independent samples: their number varies by its square root. None seen may be one.
        samples.max(1) as f64 * self.us_of_a_sample.powi(2)
    }
}

impl CostDifference {
    /// Of a row and its baseline: their samples and scales.
    pub(crate) fn of(row: (u64, ProfileScale), baseline: (u64, ProfileScale)) -> Self {
        let us = row.1.us(row.0) - baseline.1.us(baseline.0);
        let variance = row.1.variance(row.0) + baseline.1.variance(baseline.0);
        Self { us, error_us: STANDARD_ERRORS * variance.sqrt() }
    }

    /// Whether sampling alone does not explain it.
    pub(crate) fn is_sure(&self) -> bool {
        self.us.abs() > self.error_us
    }

    /// `+1.23 us [+1.01 +1.45]`
    pub(crate) fn told(&self) -> String {
        let Self { us, error_us } = self;
        format!("{us:+.2} us [{:+.2} {:+.2}]", us - error_us, us + error_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_as_sure_as_its_samples() {
        let scale = |us_of_a_sample| ProfileScale { us_of_a_sample };
        let few = CostDifference::of((9, scale(0.1)), (16, scale(0.1)));
        assert_eq!((few.told().as_str(), few.is_sure()), ("-0.70 us [-2.20 +0.80]", false));
        let many = CostDifference::of((900, scale(0.001)), (1600, scale(0.001)));
        assert_eq!((many.told().as_str(), many.is_sure()), ("-0.70 us [-0.85 -0.55]", true));
        let new = CostDifference::of((100, scale(0.1)), (0, scale(0.1)));
        assert!(new.is_sure() && new.us == 10.0);
    }
}
