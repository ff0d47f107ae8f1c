//! Gunther's Universal Scalability Law: the rate of N workers, clients or machines,
//! `X(N) = first * N / (1 + contention * (N - 1) + coherence * N * (N - 1))`.
//!
//! Contention is the share of work that only one can do at a time (Amdahl's law), and bounds the
//! rate. Coherence is what each two cost each other, and lets the rate fall beyond a peak.

/// The parameters of the law; none is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingLaw {
    /// The rate of one.
    pub first: f64,
    pub contention: f64,
    pub coherence: f64,
}

/// The unknowns of an equation: the law's parameters.
const TERMS: usize = 3;

impl ScalingLaw {
    /// The law that fits numbers and their rates best. `terms`: 3 for all parameters, 2 for no
    /// coherence; there must be as many numbers. `None` if a value is not positive, or the numbers
    /// are too few.
    ///
    /// `N / X` is linear in the parameters, so the fit is exact. Each point weighs by the inverse
    /// square of its `N / X`, because the noise of a rate is in proportion to it: in simulations,
    /// errors are smaller than those of unweighted least squares, by far for large N.
    pub fn fit(points: &[(f64, f64)], terms: usize) -> Option<Self> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        if points.len() < terms || points.iter().any(|of| !is_positive(of.0) || !is_positive(of.1))
        {
            return None;
        }
        let rows: Vec<[f64; TERMS]> = points.iter().map(|of| equation(*of)).collect();
        let subsets = subsets(terms.min(TERMS));
        let solutions = subsets.filter_map(|subset| solve(&rows, &subset));
        let feasible = solutions.filter(|solution| solution.iter().all(|value| *value >= 0.0));
        let with_error = feasible.map(|solution| (error(&rows, &solution), solution));
        let (_, [a, b, c]) = with_error.min_by(|one, other| one.0.total_cmp(&other.0))?;
        is_positive(a).then(|| Self { first: 1.0 / a, contention: b / a, coherence: c / a })
    }

    /// The rate of a number.
    pub fn rate(&self, number: f64) -> f64 {
        let others = number - 1.0;
        self.first * number / (1.0 + self.contention * others + self.coherence * number * others)
    }

    /// The number with the highest rate; infinite without coherence.
    pub fn peak(&self) -> f64 {
        match self.coherence > 0.0 {
            true => ((1.0 - self.contention).max(0.0) / self.coherence).sqrt().max(1.0),
            false => f64::INFINITY,
        }
    }
}

/// The coefficients of a point's equation, divided by `N / X` so that the right side is 1.
fn equation((number, rate): (f64, f64)) -> [f64; TERMS] {
    let weight = rate / number;
    [weight, weight * (number - 1.0), weight * number * (number - 1.0)]
}

/// The parameters that may differ from 0. The least-squares solution with a bound at 0 is that of
/// some subset without bounds.
fn subsets(terms: usize) -> impl Iterator<Item = Vec<usize>> {
    let others = 1..terms;
    (0..1_usize << others.len()).map(move |chosen| {
        let is_chosen = |term: &usize| chosen >> (term - 1) & 1 == 1;
        std::iter::once(0).chain(others.clone().filter(is_chosen)).collect()
    })
}

/// The least-squares solution in which only some parameters differ from 0; `None` if there is no
/// single one.
fn solve(rows: &[[f64; TERMS]], subset: &[usize]) -> Option<[f64; TERMS]> {
    // Columns of the same length: numbers from 1 to thousands would lose digits otherwise.
    let length = |term: usize| rows.iter().map(|row| row[term].powi(2)).sum::<f64>().sqrt();
    let lengths: Vec<f64> = subset.iter().map(|term| length(*term)).collect();
    if lengths.contains(&0.0) {
        return None;
    }
    let column = |at: usize| {
        let (term, length) = (subset[at], lengths[at]);
        rows.iter().map(move |row| row[term] / length)
    };
    let product = |one: usize, other: usize| column(one).zip(column(other)).map(|(a, b)| a * b);
    let count = subset.len();
    let mut system: Vec<Vec<f64>> = (0..count)
        .map(|one| {
            let products = (0..count).map(|other| product(one, other).sum());
            products.chain([column(one).sum()]).collect()
        })
        .collect();
    let scaled = eliminate(&mut system)?;
    let mut solution = [0.0; TERMS];
    for ((term, length), value) in subset.iter().zip(&lengths).zip(scaled) {
        solution[*term] = value / length;
    }
    Some(solution)
}

/// Below this a pivot is rounding: the equations have no single solution.
const PIVOT_MIN: f64 = 1e-12;

/// Gauss and Jordan, for a symmetric positive system, whose last column is its right side.
fn eliminate(system: &mut [Vec<f64>]) -> Option<Vec<f64>> {
    for at in 0..system.len() {
        let pivot = system[at][at];
        if pivot < PIVOT_MIN {
            return None;
        }
        system[at].iter_mut().for_each(|value| *value /= pivot);
        let row = system[at].clone();
        for (_, other) in system.iter_mut().enumerate().filter(|(place, _)| *place != at) {
            let factor = other[at];
            other.iter_mut().zip(&row).for_each(|(value, of)| *value -= factor * of);
        }
    }
    Some(system.iter().filter_map(|row| row.last().copied()).collect())
}

fn error(rows: &[[f64; TERMS]], solution: &[f64; TERMS]) -> f64 {
    let left = |row: &[f64; TERMS]| row.iter().zip(solution).map(|(a, b)| a * b).sum::<f64>();
    rows.iter().map(|row| (left(row) - 1.0).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: ScalingLaw = ScalingLaw { first: 1000.0, contention: 0.03, coherence: 0.0005 };

    fn points(law: ScalingLaw, numbers: &[f64]) -> Vec<(f64, f64)> {
        numbers.iter().map(|number| (*number, law.rate(*number))).collect()
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-6 * right.abs().max(1e-3)
    }

    fn is_law(found: ScalingLaw, expected: ScalingLaw) -> bool {
        near(found.first, expected.first)
            && near(found.contention, expected.contention)
            && near(found.coherence, expected.coherence)
    }

    #[test]
    fn points_of_a_law_give_that_law() {
        for numbers in [&[1.0, 2.0, 4.0, 8.0][..], &[1.0, 10.0, 100.0, 1000.0, 10_000.0]] {
            let found = ScalingLaw::fit(&points(LAW, numbers), 3).unwrap();
            assert!(is_law(found, LAW), "{found:?}");
        }
        let amdahl = ScalingLaw { coherence: 0.0, ..LAW };
        let found = ScalingLaw::fit(&points(amdahl, &[1.0, 2.0, 4.0]), 2).unwrap();
        assert!(is_law(found, amdahl), "{found:?}");
    }

    /// From N / X = 1/first * (1 + ...) for N = 1 to 4 with a rate of N to the power of 1.1.
    #[test]
    fn growth_beyond_proportion_is_not_a_negative_contention() {
        let points: Vec<_> = [1.0, 2.0, 3.0, 4.0].map(|n: f64| (n, n.powf(1.1))).to_vec();
        let found = ScalingLaw::fit(&points, 3).unwrap();
        assert_eq!((found.contention, found.coherence), (0.0, 0.0));
        assert!(found.first > 1.0 && found.first < 1.2, "{found:?}");
    }

    #[test]
    fn a_peak_is_the_highest_rate() {
        let peak = LAW.peak();
        assert!(near(peak, (0.97_f64 / 0.0005).sqrt()));
        assert!([0.9, 1.1].iter().all(|times| LAW.rate(peak * times) < LAW.rate(peak)));
        assert_eq!(ScalingLaw { coherence: 0.0, ..LAW }.peak(), f64::INFINITY);
        assert_eq!(ScalingLaw { contention: 2.0, ..LAW }.peak(), 1.0);
    }

    #[test]
    fn too_few_or_invalid_points_have_no_law() {
        assert_eq!(ScalingLaw::fit(&points(LAW, &[1.0, 2.0]), 3), None);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ScalingLaw::fit(&[(1.0, 1.0), (2.0, wrong), (3.0, 2.0)], 3), None);
        }
    }
}
