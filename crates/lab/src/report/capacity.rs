//! The table of scaling: the law's parameters for each series.

use statistics::Interval;

use crate::capacity::{CapacityFit, ScalingSeries, SeriesFit};
use crate::record::StudyRecord;

/// The parameters of each series; `None` if the study names no factor that scales.
pub(super) fn scaling(record: &StudyRecord, program: usize) -> Option<Vec<Vec<String>>> {
    let factor = record.study.scaling.as_ref()?;
    let head = [
        format!("scaling with {factor}"),
        "requests/s of one".to_owned(),
        "contention".to_owned(),
        "coherence".to_owned(),
        "peak at".to_owned(),
        "requests/s there".to_owned(),
        "fits within".to_owned(),
        "remark".to_owned(),
    ];
    let all = ScalingSeries::all(record, program);
    let fits: Vec<SeriesFit> = all.iter().map(|series| SeriesFit::of(record, series)).collect();
    if let Some(why) = why_none(&fits) {
        let head = [head[0].clone(), head[7].clone()];
        return Some(vec![head.to_vec(), vec![format!("all {} series", fits.len()), why]]);
    }
    let rows = all.iter().zip(fits).map(|(series, fit)| {
        let cells = match fit {
            SeriesFit::None(why) => [(); 6].map(|()| "-".to_owned()).into_iter().chain([why]),
            SeriesFit::Fit(fit) => {
                let [cells @ .., remark] = cells(&fit);
                cells.into_iter().chain([remark])
            }
        };
        std::iter::once(series.name.clone()).chain(cells).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| std::iter::once(head.to_vec()).chain(rows).collect())
}

/// Why none of several series has a fit, if the reason is the same for all.
fn why_none(fits: &[SeriesFit]) -> Option<String> {
    let why = |fit: &SeriesFit| match fit {
        SeriesFit::None(why) => Some(why.clone()),
        SeriesFit::Fit(_) => None,
    };
    let first = why(fits.first()?)?;
    let is_same = |fit: &SeriesFit| why(fit).as_ref() == Some(&first);
    (fits.len() > 1 && fits.iter().all(is_same)).then_some(first)
}

fn cells(fit: &CapacityFit) -> [String; 7] {
    let none = || "-".to_owned();
    let has_peak = fit.has_peak();
    [
        interval(fit.first, 0, ""),
        percent(fit.contention, 2),
        fit.coherence.map_or_else(none, |coherence| percent(coherence, 4)),
        if has_peak { peak(fit) } else { none() },
        if has_peak { interval(fit.highest, 0, "") } else { none() },
        format!("{:.1} %", fit.miss * 100.0),
        remark(fit),
    ]
}

/// The peak; its interval has no end if that is beyond what the law may say.
fn peak(fit: &CapacityFit) -> String {
    let Interval { value, low, high } = fit.peak;
    match high < fit.end() {
        true => interval(fit.peak, 0, ""),
        false => format!("{value:.0} [{low:.0} more than {:.0}]", fit.end()),
    }
}

/// What the numbers alone do not say.
fn remark(fit: &CapacityFit) -> String {
    let largest = fit.largest();
    if !fit.fits() {
        "the rates do not follow the law, or are noise: do not extrapolate".to_owned()
    } else if fit.coherence.is_none() {
        format!("a peak needs one more number than {}", fit.measured.len())
    } else if !fit.has_peak() && fit.peak.low < fit.end() {
        format!("the peak lies beyond what was measured, at {:.0} or more", fit.peak.low)
    } else if !fit.has_peak() {
        format!("the peak lies beyond what was measured, at more than {:.0}", fit.end())
    } else if fit.peak.value > largest {
        format!("extrapolated: the largest number measured is {largest:.0}")
    } else {
        String::new()
    }
}

fn percent(share: Interval, digits: usize) -> String {
    let Interval { value, low, high } = share;
    let [value, low, high] = [value, low, high].map(|end| end * 100.0);
    interval(Interval { value, low, high }, digits, " %")
}

fn interval(of: Interval, digits: usize, unit: &str) -> String {
    let Interval { value, low, high } = of;
    format!("{value:.digits$}{unit} [{low:.digits$} {high:.digits$}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{record, scaling_record};

    fn row(numbers: &[f64], rate: fn(f64) -> f64) -> Vec<String> {
        scaling(&scaling_record(numbers, rate), 0).expect("a table").remove(1)
    }

    #[test]
    fn a_reason_that_all_series_share_is_told_once() {
        let none = |why: &str| SeriesFit::None(why.to_owned());
        assert_eq!(why_none(&[none("few"), none("few")]).as_deref(), Some("few"));
        assert_eq!(why_none(&[none("few"), none("other")]), None);
        assert_eq!(why_none(&[none("few")]), None);
    }

    #[test]
    fn a_peak_that_was_measured_is_told() {
        let law = |n: f64| 1000.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.001 * n * (n - 1.0));
        let cells = row(&[1.0, 8.0, 16.0, 32.0, 64.0], law);
        let expected = [
            "one",
            "1000 [1000 1000]",
            "3.00 % [3.00 3.00]",
            "0.1000 % [0.1000 0.1000]",
            "31 [31 31]",
            "10954 [10954 10954]",
            "0.0 %",
            "",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let amdahl = |n: f64| 1000.0 * n / (1.0 + 0.1 * (n - 1.0));
        let late = |n: f64| 1000.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.01 * n * (n - 1.0));
        for (numbers, rate, coherence, peak, remark) in [
            (&[1.0, 2.0][..], amdahl as fn(f64) -> f64, "-", "-", "2 numbers of a: a fit needs 3"),
            (&[1.0, 2.0, 4.0], amdahl, "-", "-", "a peak needs one more number than 3"),
            (
                &[1.0, 2.0, 4.0, 8.0],
                amdahl,
                "0.0000 % [0.0000 0.0000]",
                "-",
                "the peak lies beyond",
            ),
            (
                &[1.0, 2.0, 4.0, 6.0],
                late,
                "1.0000 % [1.0000 1.0000]",
                "10 [10 10]",
                "extrapolated: ",
            ),
            (&[1.0, 2.0, 3.0, 4.0], late, "1.0000 % [1.0000 1.0000]", "-", "the peak lies beyond"),
            (&[1.0, 8.0, 32.0, 64.0], |n| n.min(8.0), "0.", "-", "the rates do not follow"),
        ] {
            let cells = row(numbers, rate);
            assert!(cells[3].starts_with(coherence) && cells[4] == peak, "{cells:?}");
            assert!(cells[7].starts_with(remark), "{cells:?}");
        }
    }

    #[test]
    fn a_study_that_does_not_scale_has_no_table() {
        assert!(scaling(&record(8), 0).is_none());
    }
}
