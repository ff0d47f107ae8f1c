//! The scale of a chart's horizontal axis: positions in per cent of its width.

/// The margin at both ends of an axis, as a share of its length.
const MARGIN: f64 = 0.04;
/// About the most ticks of an axis.
const TICKS_MAX: usize = 6;

/// An axis: linear, or of decimal logarithms.
pub(super) struct ChartScale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl ChartScale {
    /// The axis from the least to the greatest of the values.
    pub(super) fn linear(values: &[f64]) -> Self {
        Self::over(values.iter().copied(), false)
    }

    /// The logarithmic axis from the least to the greatest of the values above zero.
    pub(super) fn logarithmic(values: &[f64]) -> Self {
        Self::over(values.iter().filter(|value| **value > 0.0).map(|value| value.log10()), true)
    }

    fn over(values: impl Iterator<Item = f64>, is_logarithmic: bool) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let ends = finite.fold(None, |ends, value| match ends {
            None => Some((value, value)),
            Some((low, high)) => Some((value.min(low), value.max(high))),
        });
        let (low, high) = ends.unwrap_or((0.0, 0.0));
        let margin = if high > low { (high - low) * MARGIN } else { 0.5 };
        Self { low: low - margin, high: high + margin, is_logarithmic }
    }

    /// The position of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { value.log10() } else { value };
        ((value - self.low) / (self.high - self.low) * 100.0).clamp(0.0, 100.0)
    }

    /// Round values along the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.is_logarithmic {
            true => self.round_powers(),
            false => self.round_multiples(),
        }
    }

    fn round_multiples(&self) -> Vec<f64> {
        let least = (self.high - self.low) / TICKS_MAX as f64;
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = step.into_iter().find(|step| *step >= least).unwrap_or(least);
        let first = (self.low / step).ceil() as i64;
        let values = (first..).map(|number| number as f64 * step);
        values.take_while(|value| *value <= self.high).take(TICKS_MAX + 1).collect()
    }

    fn round_powers(&self) -> Vec<f64> {
        let powers = self.low.floor() as i32..=self.high.ceil() as i32;
        let of = |digits: &'static [f64]| {
            let values = powers
                .clone()
                .flat_map(move |power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            let inside = |value: &f64| (self.low..=self.high).contains(&value.log10());
            values.filter(inside).collect::<Vec<_>>()
        };
        let many = of(&[1.0, 2.0, 5.0]);
        if many.len() <= TICKS_MAX { many } else { of(&[1.0]) }
    }
}

#[cfg(test)]
mod tests {
    use super::ChartScale;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ChartScale::linear(&[-3.0, 0.0, 10.0]).ticks(), [0.0, 5.0, 10.0]);
        assert_eq!(ChartScale::linear(&[0.0, 60.0]).ticks(), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ChartScale::logarithmic(&[80.0, 700.0]).ticks(), [100.0, 200.0, 500.0]);
        assert_eq!(ChartScale::logarithmic(&[8.0, 2000.0]).ticks(), [10.0, 100.0, 1000.0]);
    }

    #[test]
    fn values_lie_inside_their_axis() {
        let scale = ChartScale::linear(&[0.0, 10.0]);
        assert!((scale.at(5.0) - 50.0).abs() < 1e-9 && scale.at(0.0) > 0.0);
        assert_eq!(scale.at(99.0), 100.0);
        let scale = ChartScale::logarithmic(&[1.0, 100.0, 0.0]);
        assert!((scale.at(10.0) - 50.0).abs() < 1e-9);
        assert_eq!(scale.at(0.0), 0.0);
    }

    #[test]
    fn an_axis_without_a_length_has_ticks() {
        assert_eq!(ChartScale::linear(&[0.0, 0.0]).ticks().len(), 5);
        assert!(ChartScale::linear(&[f64::NAN]).at(0.0) > 0.0);
        assert!(!ChartScale::logarithmic(&[]).ticks().is_empty());
    }
}
