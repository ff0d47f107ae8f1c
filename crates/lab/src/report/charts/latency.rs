//! Latency, one row each: the median, two high percentiles and the maximum, on one axis.

use super::chart::{ChartRow, ReportChart};
use super::scale::ChartScale;
use crate::effect::level;
use crate::figures::{MAX, P50, P99, P999, StudyMeasure};
use crate::record::{StudyRecord, Subject};

/// The figures shown, from left to right.
const SHOWN: [StudyMeasure; 4] = [P50, P99, P999, MAX];

/// The chart of a program's rows.
pub(super) fn chart(file: String, record: &StudyRecord, program: usize) -> ReportChart {
    let own = record.subjects().filter(|subject| subject.program == program);
    let levels = |subject: Subject| {
        (record.rows()[subject.row].name.clone(), SHOWN.map(|of| level(record, subject, of)))
    };
    let rows: Vec<(String, [f64; 4])> = own.map(levels).collect();
    let all: Vec<f64> = rows.iter().flat_map(|row| row.1).collect();
    let scale = ChartScale::logarithmic(&all);
    let row = |(name, levels): &(String, [f64; 4])| ChartRow {
        name: name.clone(),
        value: format!("p50 {}, p99 {}", unit(levels[0]), unit(levels[1])),
        class: "level",
        line: Some((scale.at(levels[0]), scale.at(levels[3]))),
        dots: levels.map(|level| scale.at(level)).to_vec(),
    };
    let rows = rows.iter().map(row).collect();
    let caption = "Latency: p50, p99, p99.9 and maximum from left to right (medians of the turns, \
                   logarithmic axis)";
    ReportChart::new(file, caption.to_owned(), &scale, unit, None, rows)
}

fn unit(us: f64) -> String {
    match us {
        _ if us < 1000.0 => format!("{us:.0} us"),
        _ if us < 10_000.0 => format!("{:.1} ms", us / 1000.0),
        _ => format!("{:.0} ms", us / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::record;

    #[test]
    fn each_row_has_its_percentiles() {
        let mut record = record(8);
        for turn in &mut record.turns {
            turn.measured.max_us = 12_000.0;
        }
        let drawn = super::chart(String::new(), &record, 0).drawing("");
        assert_eq!(drawn.matches("<circle").count(), 8, "{drawn}");
        assert!(drawn.contains("p99 100 us") && drawn.contains(">10 ms</text>"), "{drawn}");
    }
}
