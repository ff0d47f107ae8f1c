//! Parts of what generators print.

/// The rest of the first line that begins with a label, after blanks.
pub(super) fn after<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label)).map(str::trim)
}

/// A time in microseconds: `1.50ms`, `111us`, `1.50s`, `2m`.
pub(super) fn microseconds(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7), ("h", 3.6e9)];
    let (number, scale) =
        units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    number.parse::<f64>().ok().map(|number| number * scale).filter(|time| time.is_finite())
}

/// A number that is finite and not below 0.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(microseconds("1.50ms"), Some(1500.0));
        assert_eq!(microseconds("111us"), Some(111.0));
        assert_eq!(microseconds("2.00s"), Some(2e6));
        assert_eq!((microseconds(""), microseconds("s"), microseconds("1")), (None, None, None));
    }
}
