//! A percentile: parsed from a word, and its value in a histogram.

use std::fmt;

use hdrhistogram::Histogram;

/// More than 0, and at most 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile(f64);

/// The precision; further digits are dropped.
const DECIMALS: f64 = 1e6;

impl Percentile {
    /// The percentile of the maximum.
    pub const MAX: Self = Self(100.0);

    /// `99`, `99.9`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent = text.parse::<f64>().ok().filter(|_| is_decimal);
        let percent = percent.map(|percent| (percent * DECIMALS).round() / DECIMALS);
        percent
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is not a percentile, such as 99 or 99.9"))
    }

    /// The value that this share of all values does not exceed.
    ///
    /// `99.9 / 100.0` is a little more than 0.999: of a thousand values that would be the last.
    pub fn of(self, histogram: &Histogram<u64>) -> u64 {
        histogram.value_at_quantile((self.0 * DECIMALS).round() / (100.0 * DECIMALS))
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::histogram::histogram;

    #[test]
    fn one_in_a_thousand_is_not_two() {
        let mut values = histogram();
        values.record_n(1, 999).unwrap();
        values.record(1000).unwrap();
        let at = |text| Percentile::parse(text).unwrap().of(&values);
        assert_eq!((at("50"), at("99.9"), at("99.91"), at("100")), (1, 1, 1000, 1000));
    }

    #[test]
    fn invalid_percentiles_are_refused() {
        for text in ["", "0", "0.00000001", "101", "-1", "+1", "1e1", "inf", "NaN", "9.9.9"] {
            assert!(Percentile::parse(text).is_err(), "{text}");
        }
    }
}
