//! How rates scale with a number, of workers for instance: a row for all else that is the same.

use std::collections::BTreeMap;

use super::chart::{ChartRow, MIDDLE, figure};
use super::scale::ChartScale;
use crate::effect::level;
use crate::figures::RATE;
use crate::record::{StudyRecord, Subject};
use crate::study::Study;

/// Rows that differ in nothing but the number.
struct ScalingSeries {
    name: String,
    /// The numbers in order, and requests per second.
    points: Vec<(u32, f64)>,
}

/// The chart; nothing if the study does not ask for it.
pub(super) fn chart(record: &StudyRecord, program: usize) -> String {
    let Some(factor) = &record.study.scaling else { return String::new() };
    let all = series(record, program, factor);
    let rates: Vec<f64> = all.iter().flat_map(|of| of.points.iter().map(|point| point.1)).collect();
    let scale = ChartScale::logarithmic(&rates);
    let row = |of: &ScalingSeries| ChartRow {
        name: of.name.clone(),
        marks: marks(&scale, &of.points),
        value: value(&of.points),
    };
    let rows: Vec<ChartRow> = all.iter().map(row).collect();
    let caption = format!(
        "Requests per second by {factor}: the first filled, the others beside it (logarithmic axis)"
    );
    figure(&caption, &scale, |rate| format!("{rate:.0}"), None, &rows)
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

/// A combination without the number; of listed rows, the first's name.
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

fn marks(scale: &ChartScale, points: &[(u32, f64)]) -> String {
    let at: Vec<f64> = points.iter().map(|point| scale.at(point.1)).collect();
    let dot = |(place, at): (usize, &f64)| {
        let class = if place == 0 { "p50" } else { "more" };
        format!("<circle class=\"{class}\" cx=\"{at:.2}%\" cy=\"{MIDDLE}\" r=\"4\"/>")
    };
    let dots: String = at.iter().enumerate().map(dot).collect();
    let (low, high) =
        (at.iter().copied().fold(100.0, f64::min), at.iter().copied().fold(0.0, f64::max));
    format!(
        "<g class=\"latency\"><line x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"{MIDDLE}\" \
         y2=\"{MIDDLE}\"/>{dots}</g>"
    )
}

/// `2: x 1.85, 4: x 3.5`
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
        assert_eq!(chart(&record, 0), "");
        record.study.scaling = Some("a".to_owned());
        for turn in record.turns.iter_mut().filter(|turn| turn.row == 1) {
            turn.measured.rate *= 1.5;
        }
        let html = chart(&record, 0);
        assert!(html.contains("2: \u{d7} 1.50") && html.matches("<circle").count() == 2, "{html}");
    }
}
