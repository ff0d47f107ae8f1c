//! Medians and quantiles.

/// The median; NaN if there are no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this proportion of the values lies, interpolated linearly (type 7 of
/// Hyndman and Fan, as in R and NumPy). NaN if there are no values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, share)
}

/// The same for values in ascending order.
pub(crate) fn of_sorted(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `quantile(c(15, 20, 35, 40, 50), c(0.05, 0.3, 0.4, 0.5, 1))` gives 16, 23, 29, 35, 50.
    #[test]
    fn quantiles_are_those_of_r() {
        let values = [50.0, 15.0, 40.0, 20.0, 35.0];
        let found = [0.05, 0.3, 0.4, 0.5, 1.0].map(|share| quantile(&values, share));
        for (found, expected) in found.into_iter().zip([16.0, 23.0, 29.0, 35.0, 50.0]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn quantiles_of_few_values() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[3.0, 1.0]), 2.0);
    }
}
