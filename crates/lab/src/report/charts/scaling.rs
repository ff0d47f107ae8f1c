//! How rates scale with a number, such as the number of workers: one row for each combination of
//! the other factors.

use std::collections::BTreeMap;

use super::chart::{ChartRow, ReportChart};
use super::scale::ChartScale;
use crate::effect::level;
use crate::figures::RATE;
use crate::record::{StudyRecord, Subject};
use crate::study::Study;

/// Rows that differ only in the number.
struct ScalingSeries {
    name: String,
    /// The numbers in ascending order, each with its requests per second.
    points: Vec<(u32, f64)>,
}

/// The chart; `None` if the study names no such factor.
pub(super) fn chart(file: String, record: &StudyRecord, program: usize) -> Option<ReportChart> {
    let factor = record.study.scaling.as_ref()?;
    let all = series(record, program, factor);
    let rates: Vec<f64> = all.iter().flat_map(|of| of.points.iter().map(|point| point.1)).collect();
    let scale = ChartScale::logarithmic(&rates);
    let rows = all.iter().map(|of| of.row(&scale)).collect();
    let caption = format!(
        "Requests per second by {factor}: the first large, the others beside it (logarithmic axis)"
    );
    Some(ReportChart::new(file, caption, &scale, |rate| format!("{rate:.0}"), None, rows))
}

impl ScalingSeries {
    fn row(&self, scale: &ChartScale) -> ChartRow {
        let dots: Vec<f64> = self.points.iter().map(|point| scale.at(point.1)).collect();
        let (low, high) =
            (dots.iter().copied().fold(100.0, f64::min), dots.iter().copied().fold(0.0, f64::max));
        ChartRow {
            name: self.name.clone(),
            value: value(&self.points),
            class: "level",
            line: Some((low, high)),
            dots,
        }
    }
}

fn series(record: &StudyRecord, program: usize, factor: &str) -> Vec<ScalingSeries> {
    let study = &record.study;
    let mut groups = BTreeMap::<_, ScalingSeries>::new();
    for (row, of) in study.rows.iter().enumerate() {
        let mut levels = study.levels(of);
        let number = levels.remove(factor).and_then(|number| number.parse().ok());
        let subject = Subject { program, row };
        let (Some(number), false) = (number, of.direct || !record.has(subject)) else { continue };
        let rate = level(record, subject, RATE);
        let name = || name(study, row, factor);
        let group = groups.entry(levels.into_iter().collect::<Vec<_>>());
        let group = group.or_insert_with(|| ScalingSeries { name: name(), points: Vec::new() });
        group.points.push((number, rate));
    }
    let mut all: Vec<_> = groups.into_values().filter(|of| of.points.len() > 1).collect();
    all.iter_mut().for_each(|of| of.points.sort_by_key(|point| point.0));
    all
}

/// The levels of the other factors; if the study lists its rows, the name of the first row.
fn name(study: &Study, row: usize, factor: &str) -> String {
    let row = &study.rows[row];
    if study.factorial.is_empty() {
        return row.name.clone();
    }
    let levels = study.levels(row);
    let others = study.factorial.iter().filter(|name| *name != factor);
    let others = others.map(|name| format!("{name} {}", levels[name.as_str()]));
    others.collect::<Vec<_>>().join(", ")
}

/// The numbers and the factors by which the rate grew: `2: x 1.85, 4: x 3.5`.
fn value(points: &[(u32, f64)]) -> String {
    let Some(((_, first), others)) = points.split_first() else { return String::new() };
    let factor = |(number, rate): &(u32, f64)| format!("{number}: \u{d7} {:.2}", rate / first);
    others.iter().map(factor).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_in_the_number_are_one_series() {
        let mut record = crate::testing::record(8);
        assert!(chart(String::new(), &record, 0).is_none());
        record.study.scaling = Some("a".to_owned());
        for turn in record.turns.iter_mut().filter(|turn| turn.row == 1) {
            turn.measured.rate *= 1.5;
        }
        let drawn = chart(String::new(), &record, 0).expect("a chart").drawing("");
        let dots = drawn.matches("<circle").count();
        assert!(drawn.contains("2: \u{d7} 1.50") && dots == 2, "{drawn}");
    }
}
