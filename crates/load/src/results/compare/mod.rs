//! `weir load compare A.json B.json`: two sets of runs side by side.
//!
//! A difference is shown with its 95 % interval. It is computed from repeated runs; if one side has
//! a single run, from blocks of seconds, which do not contain the differences between runs. Several
//! measures are compared, so one in twenty equal ones seems to differ. docs/load-compare.md
//! describes the method for users.

mod kinds;
mod measures;
pub mod turns;

use std::ffi::OsString;
use std::fs;

use statistics::{Interval, geometric_mean, ratio_of_means};

use super::{LoadKind, Results, json};
use measures::{MEASURES, Measure, P99, RATE};

const USAGE: &str = "\
Usage: weir load compare A.json[,A2.json...] B.json[,B2.json...]

Compares the results of weir load --json. Each side is one or more files. A difference is more than
the noise if its 95 % interval excludes 0. Repeated runs show the noise best (weir load --repeat 5).

Options:
  -h, --help  print this help
";

/// A smaller difference would be shown as 0.0 %.
const DIFFERENCE_MIN: f64 = 0.0005;
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The comparison as text, for the arguments after `compare`.
pub fn run(words: &[OsString]) -> Result<String, String> {
    let text = |word: &OsString| word.to_str().map(str::to_owned).ok_or("a file name is not UTF-8");
    let words: Vec<String> = words.iter().map(text).collect::<Result<_, _>>()?;
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(USAGE.to_owned());
    }
    let [a, b] = &words[..] else {
        return Err(format!("two files, or two lists of files, are required\n{USAGE}"));
    };
    Ok(compare(&side(a)?, &side(b)?))
}

fn side(list: &str) -> Result<Vec<Results>, String> {
    let mut runs = Vec::new();
    for file in list.split(',') {
        let of_file = |what: String| format!("{file}: {what}");
        let size = fs::metadata(file).map_err(|error| of_file(error.to_string()))?.len();
        if size > FILE_BYTES_MAX {
            return Err(of_file(format!("larger than {FILE_BYTES_MAX} bytes")));
        }
        let text = fs::read(file).map_err(|error| of_file(error.to_string()))?;
        runs.extend(json::read(&text).map_err(of_file)?);
    }
    if runs.is_empty() { Err(format!("{list}: no runs")) } else { Ok(runs) }
}

/// Compares two sides, which are not empty.
fn compare(a: &[Results], b: &[Results]) -> String {
    let noise = Noise::of(a, b);
    let rows: Vec<ComparisonRow> =
        MEASURES.iter().map(|measure| ComparisonRow::of(measure, noise, a, b)).collect();
    let mut text = kinds::differences(a, b);
    text += &format!("{:<24}{:>12}{:>12}   B from A\n", "", "A", "B");
    rows.iter().for_each(|row| text += &row.line());
    text += &failures(a, b);
    let open = |run: &Results| matches!(run.pace, LoadKind::Open { .. });
    let headline = if a.iter().chain(b).any(open) {
        headline(&rows[P99], "p99 latency", "higher", "lower")
    } else {
        headline(&rows[RATE], "rate", "faster", "slower")
    };
    text += &format!("\n{headline}\n{}", noise.source(a.len(), b.len()));
    let warnings = kinds::warnings("A", a) + &kinds::warnings("B", b);
    if warnings.is_empty() { text } else { format!("{text}\n{warnings}") }
}

#[derive(Clone, Copy, PartialEq)]
enum Noise {
    Runs,
    Seconds,
}

impl Noise {
    fn of(a: &[Results], b: &[Results]) -> Self {
        if a.len() > 1 && b.len() > 1 { Self::Runs } else { Self::Seconds }
    }

    fn source(self, a: usize, b: usize) -> String {
        match self {
            Self::Runs => format!("The noise is that between the runs: {a} of A, {b} of B.\n"),
            Self::Seconds => "The noise is that between the seconds within runs. Runs differ from \
                each other by more\nthan that: to know by how much, measure both with --repeat 5.\n"
                .to_owned(),
        }
    }
}

/// A measure of both sides.
struct ComparisonRow {
    measure: &'static Measure,
    a: f64,
    b: f64,
    /// B's value to A's, if both are not 0.
    ratio: Option<f64>,
    /// The same with its interval, if the noise is known.
    interval: Option<Interval>,
}

impl ComparisonRow {
    fn of(measure: &'static Measure, noise: Noise, a: &[Results], b: &[Results]) -> Self {
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

    fn line(&self) -> String {
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
fn failures(a: &[Results], b: &[Results]) -> String {
    let share = |runs: &[Results]| {
        let mean = runs.iter().map(measures::failed).sum::<f64>() / runs.len() as f64;
        format!("{:.4} %", mean * 100.0)
    };
    format!("{:<24}{:>12}{:>12}\n", "failed", share(a), share(b))
}

fn headline(row: &ComparisonRow, name: &str, more: &str, less: &str) -> String {
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

#[cfg(test)]
mod tests;
