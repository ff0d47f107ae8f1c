//! Latency as distributions, one curve for each row: latency by percentile, on an axis that gives
//! as much room to the step from 99 to 99.9 % as to that from 90 to 99 %.

use super::super::latency::duration;
use super::chart::ReportChart;
use super::plot::{CURVES_MAX, ChartCurve, ChartPlot};
use super::scale::ChartScale;
use crate::distribution::{BEYOND_MIN, PooledLatencies, pooled};
use crate::record::{StudyRecord, Subject};

/// The percentiles with ticks: the share of requests beyond each, and its name.
const TICKS: [(f64, &str); 5] =
    [(0.5, "50 %"), (0.1, "90 %"), (0.01, "99 %"), (0.001, "99.9 %"), (0.0001, "99.99 %")];
/// The quantile whose change decides which rows are drawn.
const DECISIVE: f64 = 0.99;
/// The points of a curve.
const POINTS: usize = 90;
/// The left end of the axis: that of 10 %. The few fastest requests would take half the height.
const START: f64 = 0.045_757;

/// A row with its latencies.
struct ShownRow {
    row: usize,
    name: String,
    pooled: PooledLatencies,
    /// The distance of its p99 from that of its baseline; that of the first row is infinite.
    distance: f64,
}

/// The chart of a program's rows; `None` if the record has no latencies.
pub(super) fn chart(file: String, record: &StudyRecord, program: usize) -> Option<ReportChart> {
    let (shown, left_out) = rows(record, program);
    let extent = shown.iter().map(ShownRow::extent).fold(0.0, f64::max);
    let across = |place: f64| (place - START) / (extent - START) * 100.0;
    let curves: Vec<Vec<(f64, f64)>> = shown.iter().map(ShownRow::points).collect();
    let levels: Vec<f64> = curves.iter().flatten().map(|point| point.1).collect();
    let up = ChartScale::logarithmic(&levels);
    let curve = |(row, points): (&ShownRow, &Vec<(f64, f64)>)| ChartCurve {
        name: row.name.clone(),
        value: row.told(),
        points: points.iter().map(|(place, us)| (across(*place), up.at(*us))).collect(),
    };
    let curves: Vec<ChartCurve> = shown.iter().zip(&curves).map(curve).collect();
    let ticks = TICKS.map(|(beyond, name)| (across(-f64::log10(beyond)), name.to_owned()));
    let plot = ChartPlot {
        curves,
        across: ticks.into_iter().filter(|tick| tick.0 <= 100.5).collect(),
        up: up.ticks().into_iter().map(|us| (up.at(us), tick(us))).collect(),
    };
    (!shown.is_empty()).then(|| ReportChart::of_plot(file, caption(&left_out), plot))
}

/// The rows to be drawn, and the names of those left out.
fn rows(record: &StudyRecord, program: usize) -> (Vec<ShownRow>, Vec<String>) {
    let own = record.subjects().filter(|subject| subject.program == program);
    let row = |subject: Subject| {
        let pooled = pooled(record, subject).filter(|latencies| latencies.requests() > 0.0)?;
        let name = record.study.label(subject.row);
        Some(ShownRow { row: subject.row, name, pooled, distance: f64::INFINITY })
    };
    let mut rows: Vec<ShownRow> = own.filter_map(row).collect();
    let p99: Vec<(usize, f64)> = rows.iter().map(|row| (row.row, row.at(DECISIVE))).collect();
    for row in rows.iter_mut().skip(1) {
        let baseline = record.study.baseline_of(row.row);
        let baseline = p99.iter().find(|of| of.0 == baseline).map_or(f64::NAN, |of| of.1);
        let distance = (row.at(DECISIVE) / baseline).ln().abs();
        row.distance = if distance.is_finite() { distance } else { 0.0 };
    }
    rows.sort_by(|a, b| b.distance.total_cmp(&a.distance));
    let left_out = rows.split_off(rows.len().min(CURVES_MAX));
    rows.sort_by_key(|row| row.row);
    (rows, left_out.into_iter().map(|row| row.name).collect())
}

fn caption(left_out: &[String]) -> String {
    let mut text = "Latency by percentile, of all requests of all turns".to_owned();
    if !left_out.is_empty() {
        text.push_str(&format!("; left out, because p99 differs less: {}", left_out.join(", ")));
    }
    text
}

impl ShownRow {
    fn at(&self, share: f64) -> f64 {
        self.pooled.quantile(share, &self.pooled.once())
    }

    /// The end of the curve, as a power of ten: as far as there are enough requests.
    fn extent(&self) -> f64 {
        (self.pooled.requests() / BEYOND_MIN).log10().clamp(f64::log10(2.0), 4.0)
    }

    /// The curve: places, as powers of ten, and latencies.
    fn points(&self) -> Vec<(f64, f64)> {
        let extent = self.extent();
        let point = |number| {
            let place = START + (extent - START) * number as f64 / POINTS as f64;
            (place, self.at(1.0 - 10_f64.powf(-place)))
        };
        (0..=POINTS).map(point).collect()
    }

    fn told(&self) -> String {
        format!("p50 {}, p99 {}", duration(self.at(0.5)), duration(self.at(DECISIVE)))
    }
}

/// A round latency: `200 us`, `5 ms`.
fn tick(us: f64) -> String {
    match us {
        _ if us < 1e3 => format!("{us:.0} us"),
        _ if us < 1e6 => format!("{:.0} ms", us / 1e3),
        _ => format!("{:.0} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::LatencyCounts;
    use crate::testing::record;

    #[test]
    fn curves_end_where_requests_become_few() {
        let mut record = record(8);
        let drawn = |record: &StudyRecord| chart(String::new(), record, 0).map(|of| of.drawing(""));
        let few = drawn(&record).expect("a chart");
        assert_eq!(few.matches("<g class=\"curve").count(), 2, "{few}");
        // Of 8,000 requests, 20 are beyond 99.75 %.
        assert!(few.contains(">99 %</text>") && !few.contains(">99.9 %</text>"), "{few}");
        assert!(few.contains(">p50 80.6 us, p99 101 us</text>"), "{few}");
        for turn in &mut record.turns {
            turn.measured.latencies = LatencyCounts::of([(80, 100_000)]);
        }
        assert!(drawn(&record).is_some_and(|many| many.contains(">99.99 %</text>")));
        record.turns.iter_mut().for_each(|turn| turn.measured.latencies = LatencyCounts::default());
        assert!(drawn(&record).is_none(), "an old record");
    }

    #[test]
    fn the_rows_whose_p99_differs_most_are_drawn() {
        let mut record = record(8);
        let study = &mut record.study;
        for number in 2..9 {
            let mut row = study.rows[1].clone();
            row.name = format!("row {number}");
            study.rows.push(row);
        }
        let of_a_row = |row: usize, us: u64| {
            let turns = record.turns.iter().filter(|turn| turn.row == 0).cloned();
            turns.map(move |mut turn| {
                turn.row = row;
                turn.measured.latencies = LatencyCounts::of([(us, 1000)]);
                turn
            })
        };
        let more: Vec<_> = (2..9).flat_map(|row| of_a_row(row, 100 + 100 * row as u64)).collect();
        record.turns.extend(more);
        let (shown, left_out) = rows(&record, 0);
        let shown: Vec<usize> = shown.iter().map(|row| row.row).collect();
        assert_eq!(shown, [0, 4, 5, 6, 7, 8]);
        assert_eq!(left_out.len(), 3);
        assert!(
            caption(&left_out).ends_with("p99 differs less: row 3, row 2, two"),
            "{left_out:?}"
        );
    }
}
