//! Several looks at data that are still growing, with one probability of error for all looks
//! together.
//!
//! Whoever looks five times with 95 % intervals and stops at the first effect is wrong in 14 of 100
//! cases, not in 5. Pocock ("Group sequential methods in the design and analysis of clinical
//! trials", 1977) makes every look equally strict. His bounds are those used here rather than
//! O'Brien and Fleming's, whose first looks need probabilities of one in a million, which no sample
//! of eight values can show.

/// The probability of error of each look so that the intervals of all looks together are right with
/// a probability of 95 %. Exact for looks after equal amounts of data; strict if the last look
/// comes sooner.
pub fn error_of_a_look(looks: usize) -> f64 {
    1.0 - inside(&[bound(looks)])
}

/// The probability of error of all looks together.
const ERROR: f64 = 0.05;

/// The bound that no look exceeds with a probability of 95 %, in standard errors.
fn bound(looks: usize) -> f64 {
    let (mut low, mut high) = (1.0, 5.0);
    while high - low > 1e-5 {
        let middle = (low + high) / 2.0;
        match inside(&vec![middle; looks.max(1)]) < 1.0 - ERROR {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Points of the numeric integration; an odd number, as Simpson's rule needs.
const POINTS: usize = 129;

/// The probability that a sum of normal values, divided by its standard error, is inside its bound
/// at every look (Armitage, McPherson and Rowe 1969).
fn inside(bounds: &[f64]) -> f64 {
    let mut before: Option<Grid> = None;
    for (bound, look) in bounds.iter().zip(1..) {
        let end = bound * f64::from(look).sqrt();
        before = Some(match before {
            None => Grid::new(end, normal),
            Some(sums) => Grid::new(end, |sum| sums.integral(|point| normal(sum - point))),
        });
    }
    before.map_or(1.0, |sums| sums.integral(|_| 1.0))
}

fn normal(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// A function from `-end` to `end`.
struct Grid {
    end: f64,
    values: Vec<f64>,
}

impl Grid {
    fn new(end: f64, of: impl Fn(f64) -> f64) -> Self {
        let values = (0..POINTS).map(|at| of(place(end, at))).collect();
        Self { end, values }
    }

    /// The integral of the function times another.
    fn integral(&self, other: impl Fn(f64) -> f64) -> f64 {
        let weight = |at: usize| match at {
            0 => 1.0,
            _ if at == POINTS - 1 => 1.0,
            _ if at % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let values = self.values.iter().enumerate();
        let sum: f64 =
            values.map(|(at, value)| weight(at) * value * other(place(self.end, at))).sum();
        sum * step(self.end) / 3.0
    }
}

fn step(end: f64) -> f64 {
    2.0 * end / (POINTS - 1) as f64
}

fn place(end: f64, at: usize) -> f64 {
    at as f64 * step(end) - end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jennison and Turnbull, "Group Sequential Methods", table 2.1.
    #[test]
    fn bounds_are_those_of_the_published_table() {
        for (looks, expected) in [(1, 1.960), (2, 2.178), (5, 2.413), (10, 2.555), (20, 2.672)] {
            let found = bound(looks);
            assert!((found - expected).abs() < 0.001, "{looks}: {found}");
        }
    }

    #[test]
    fn more_looks_are_stricter() {
        let errors = [1, 2, 5, 40].map(error_of_a_look);
        assert!((errors[0] - 0.05).abs() < 1e-4, "{errors:?}");
        assert!(errors.windows(2).all(|pair| pair[1] < pair[0]), "{errors:?}");
        assert!(errors[3] > 0.05 / 40.0, "{errors:?}");
    }

    /// Known as the price of peeking.
    #[test]
    fn five_looks_at_95_per_cent_are_wrong_in_14_of_100_cases() {
        assert!((inside(&[1.96; 5]) - 0.858).abs() < 0.001);
    }
}
