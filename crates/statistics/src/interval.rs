//! A value with its 95 % confidence interval.

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// An interval with the same relative width about another value.
    pub fn about(self, value: f64) -> Self {
        let scale = value / self.value;
        Self { value, low: self.low * scale, high: self.high * scale }
    }

    /// Whether a value is outside the interval: for ratios, 1 means no difference.
    pub fn excludes(self, value: f64) -> bool {
        self.low > value || self.high < value
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;

    #[test]
    fn the_ends_belong_to_the_interval() {
        let interval = Interval { value: 1.05, low: 1.0, high: 1.1 };
        assert!(!interval.excludes(1.0) && !interval.excludes(1.1));
        assert!(interval.excludes(0.99) && interval.excludes(1.2));
        let about = interval.about(2.1);
        assert_eq!((about.low, about.high), (2.0, 2.2));
    }
}
