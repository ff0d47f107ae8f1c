//! How rates scale with a number, such as the number of workers: a panel with the fitted law for
//! each combination of the other factors, and a row of dots where there are too few numbers to fit.

use statistics::Interval;

use super::chart::{ChartRow, ReportChart};
use super::panel::{ChartPanel, PanelPoint};
use super::scale::ChartScale;
use crate::capacity::{CapacityFit, ScalingSeries, SeriesFit};
use crate::effect::level;
use crate::figures::RATE;
use crate::record::{StudyRecord, Subject};

/// The charts, with these names of files; none if the study names no such factor.
pub(super) fn charts(
    [dots, panels]: [String; 2],
    record: &StudyRecord,
    program: usize,
) -> Vec<ReportChart> {
    let Some(factor) = &record.study.scaling else { return Vec::new() };
    let all = ScalingSeries::all(record, program);
    let (mut unfitted, mut fitted) = (Vec::new(), Vec::new());
    for series in &all {
        match SeriesFit::of(record, series) {
            SeriesFit::None(_) => unfitted.push(points(record, series)),
            SeriesFit::Fit(fit) => fitted.push(panel(&series.name, &fit)),
        }
    }
    let caption = format!(
        "Requests per second by {factor}: measured, the fitted law with its band (95 %), dashed \
         beyond what was measured"
    );
    vec![chart(dots, factor, &unfitted), ReportChart::of_panels(panels, caption, fitted)]
}

fn panel(name: &str, fit: &CapacityFit) -> ChartPanel {
    let point = |of: &(f64, Interval)| PanelPoint { at: of.0, value: of.1 };
    // A law that does not fit says nothing about what was not measured.
    let end = if fit.fits() { fit.end() } else { fit.largest() };
    let curve = fit.curve.iter().filter(|of| of.0 <= end).map(point).collect();
    ChartPanel {
        name: name.to_owned(),
        value: told(fit),
        points: fit.measured.iter().map(point).collect(),
        curve,
        solid_to: fit.largest(),
        mark: fit.has_peak().then_some(fit.peak.value),
    }
}

/// The parameters: `contention 3.1 %, coherence 0.05 %, peak at 44`.
fn told(fit: &CapacityFit) -> String {
    if !fit.fits() {
        return format!("no law: it misses a rate by {:.0} %", fit.miss * 100.0);
    }
    let mut text = format!("contention {:.1} %", fit.contention.value * 100.0);
    if let Some(coherence) = fit.coherence {
        text.push_str(&format!(", coherence {:.3} %", coherence.value * 100.0));
    }
    if fit.has_peak() {
        text.push_str(&format!(", peak at {:.0}", fit.peak.value));
    }
    text
}

/// A series without a fit: its name, its numbers in ascending order, and their rates.
type SeriesPoints<'s> = (&'s str, Vec<(u32, f64)>);

fn points<'s>(record: &StudyRecord, series: &'s ScalingSeries) -> SeriesPoints<'s> {
    let rate = |row| level(record, Subject { program: series.program, row }, RATE);
    let points = series.rows.iter().map(|(number, row)| (*number, rate(*row)));
    (&series.name, points.collect())
}

fn chart(file: String, factor: &str, all: &[SeriesPoints<'_>]) -> ReportChart {
    let rates: Vec<f64> = all.iter().flat_map(|of| of.1.iter().map(|point| point.1)).collect();
    let scale = ChartScale::logarithmic(&rates);
    let rows = all.iter().map(|of| row(of, &scale)).collect();
    let caption = format!(
        "Requests per second by {factor}: the first large, the others beside it (logarithmic axis)"
    );
    ReportChart::new(file, caption, &scale, |rate| format!("{rate:.0}"), None, rows)
}

fn row((name, points): &SeriesPoints<'_>, scale: &ChartScale) -> ChartRow {
    let dots: Vec<f64> = points.iter().map(|point| scale.at(point.1)).collect();
    let (low, high) =
        (dots.iter().copied().fold(100.0, f64::min), dots.iter().copied().fold(0.0, f64::max));
    ChartRow {
        name: (*name).to_owned(),
        value: value(points),
        class: "level",
        line: Some((low, high)),
        dots,
    }
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
    use crate::testing::{record, scaling_record};

    fn drawn(record: &StudyRecord) -> [String; 2] {
        let charts = charts([String::new(), String::new()], record, 0);
        let charts: [ReportChart; 2] = charts.try_into().ok().expect("two charts");
        charts.map(|chart| if chart.is_empty() { String::new() } else { chart.drawing("") })
    }

    #[test]
    fn rows_that_differ_in_the_number_are_one_series() {
        let mut record = record(8);
        assert!(charts([String::new(), String::new()], &record, 0).is_empty());
        record.study.scaling = Some("a".to_owned());
        for turn in record.turns.iter_mut().filter(|turn| turn.row == 1) {
            turn.measured.rate *= 1.5;
        }
        let [dots, panels] = drawn(&record);
        assert!(dots.contains("2: \u{d7} 1.50") && dots.matches("<circle").count() == 2, "{dots}");
        assert_eq!(panels, "");
    }

    #[test]
    fn a_series_with_a_law_is_a_panel() {
        let law = |n: f64| 1000.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.001 * n * (n - 1.0));
        let [dots, panels] = drawn(&scaling_record(&[1.0, 8.0, 16.0, 32.0, 64.0], law));
        assert_eq!(dots, "");
        assert!(panels.contains("contention 3.0 %, coherence 0.100 %, peak at 31"), "{panels}");
        assert_eq!((panels.matches("<circle").count(), panels.matches("<polygon").count()), (5, 1));
        let knee = drawn(&scaling_record(&[1.0, 8.0, 32.0, 64.0], |n| n.min(8.0)));
        assert!(knee[1].contains("no law: it misses a rate by "), "{}", knee[1]);
    }
}
