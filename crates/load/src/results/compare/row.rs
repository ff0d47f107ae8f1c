//! A row of the comparison.

use statistics::{Interval, geometric_mean, ratio_of_means};

use super::super::Results;
use super::measures::{self, Measure};

/// A smaller difference would be shown as 0.0 %.
const DIFFERENCE_MIN: f64 = 0.0005;

/// A measure of both sides.
pub(super) struct ComparisonRow {
    pub(super) measure: &'static Measure,
    pub(super) a: f64,
    pub(super) b: f64,
    /// B's value to A's, if both are not 0.
    pub(super) ratio: Option<f64>,
    /// The same with its interval, if the noise is known.
    pub(super) interval: Option<Interval>,
}

impl ComparisonRow {
    pub(super) fn of(
        measure: &'static Measure,
        noise: Noise,
        a: &[Results],
        b: &[Results],
    ) -> Self {
        let values = |runs: &[Results]| runs.iter().map(measure.of).collect::<Vec<f64>>();
        let (a_values, b_values) = (values(a), values(b));
        let (a_mean, b_mean) = (geometric_mean(&a_values), geometric_mean(&b_values));
        let ratio = a_mean.zip(b_mean).map(|(a, b)| b / a);
        let interval = match noise {
            Noise::Runs => ratio_of_means(&a_values, &b_values),
            Noise::Seconds => {
                by_seconds(measure, a, b).zip(ratio).map(|(interval, ratio)| interval.about(ratio))
            }
        };
        Self { measure, a: a_mean.unwrap_or(0.0), b: b_mean.unwrap_or(0.0), ratio, interval }
    }

    /// Whether the interval excludes "no difference", and the difference is measurable.
    fn is_more_than_noise(&self) -> bool {
        let step = (self.measure.step)(self.a.max(self.b));
        let seen = |ratio: Interval| (ratio.value - 1.0).abs() >= DIFFERENCE_MIN;
        (self.a - self.b).abs() > step
            && self.interval.is_some_and(|ratio| ratio.excludes(1.0) && seen(ratio))
    }

    pub(super) fn line(&self) -> String {
        let difference = match (self.ratio, self.interval) {
            (_, Some(Interval { value, low, high })) => {
                let [value, low, high] = [value, low, high].map(percent);
                format!("{value:+6.1} % [{low:+.1}, {high:+.1}]")
            }
            (Some(ratio), None) => format!("{:+6.1} %", percent(ratio)),
            (None, None) => format!("{:>6}", "-"),
        };
        let verdict = match (self.ratio, self.interval) {
            _ if self.is_more_than_noise() => "more than the noise",
            (_, Some(_)) => "within the noise",
            (Some(_), None) => "noise unknown",
            (None, None) => "",
        };
        let [a, b] = [self.a, self.b].map(self.measure.show);
        let line = format!("{:<24}{a:>12}{b:>12}   {difference:<24} {verdict}", self.measure.name);
        format!("{}\n", line.trim_end())
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Noise {
    Runs,
    Seconds,
}

impl Noise {
    pub(super) fn of(a: &[Results], b: &[Results]) -> Self {
        if a.len() > 1 && b.len() > 1 { Self::Runs } else { Self::Seconds }
    }

    pub(super) fn source(self, a: usize, b: usize) -> String {
        match self {
            Self::Runs => format!("The noise is that between the runs: {a} of A, {b} of B.\n"),
            Self::Seconds => "The noise is that between the seconds within runs. Runs differ from \
                each other by more\nthan that: to know by how much, measure both with --repeat 5.\n"
                .to_owned(),
        }
    }
}

/// The interval by blocks of all runs; `None` if there are too few.
fn by_seconds(measure: &Measure, a: &[Results], b: &[Results]) -> Option<Interval> {
    /// The least number of blocks for an interval.
    const BLOCKS_MIN: usize = 3;
    let by_second = measure.by_second?;
    let blocks = |runs: &[Results]| {
        runs.iter().flat_map(|run| measures::blocks(run, by_second)).collect::<Vec<f64>>()
    };
    let (a, b) = (blocks(a), blocks(b));
    (a.len().min(b.len()) >= BLOCKS_MIN).then(|| ratio_of_means(&a, &b))?
}

/// A row of failures, which have no ratio because there may be none.
pub(super) fn failures(a: &[Results], b: &[Results]) -> String {
    let share = |runs: &[Results]| {
        let mean = runs.iter().map(measures::failed).sum::<f64>() / runs.len() as f64;
        format!("{:.4} %", mean * 100.0)
    };
    format!("{:<24}{:>12}{:>12}\n", "failed", share(a), share(b))
}

pub(super) fn headline(row: &ComparisonRow, name: &str, more: &str, less: &str) -> String {
    let Some(Interval { value, low, high }) = row.interval else {
        return format!(
            "These runs cannot show whether the difference in {name} is more than the noise."
        );
    };
    let [value, low, high] = [value, low, high].map(percent);
    if !row.is_more_than_noise() {
        return format!(
            "No difference in {name} that these runs can show: \
             B {value:+.1} % [{low:+.1}, {high:+.1}]."
        );
    }
    let what = if more == "faster" { String::new() } else { format!("'s {name}") };
    if value > 0.0 {
        format!("B{what} is {value:.1} % {more} [{low:.1}, {high:.1}], more than the noise.")
    } else {
        let [value, low, high] = [-value, -high, -low];
        format!("B{what} is {value:.1} % {less} [{low:.1}, {high:.1}], more than the noise.")
    }
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}
