//! The highest rates that searches found for a row.

use statistics::{Interval, median};

use crate::effect;
use crate::record::{StudyRecord, Subject};

/// The median of a row's searches with its interval, or with its range if there are too few
/// searches for an interval: `12000 [11000 13000]`, `12000 (11000 to 13000)`.
pub(crate) fn told(record: &StudyRecord, subject: Subject) -> String {
    let rates: Vec<f64> = record.searches_of(subject).values().copied().collect();
    match effect::interval(record, &rates) {
        _ if rates.is_empty() => "not searched".to_owned(),
        Some(Interval { value, low, high }) => format!("{value:.0} [{low:.0} {high:.0}]"),
        None => format!("{:.0} ({})", median(&rates), range(&rates, |rate| format!("{rate:.0}"))),
    }
}

/// The ratio of one subject's rate to another's, repeat by repeat.
pub(crate) fn ratio(record: &StudyRecord, subject: Subject, to: Subject) -> Option<Interval> {
    effect::interval(record, &ratios(record, subject, to))
}

/// The same as text, with the range of the ratios if there are too few for an interval.
pub(crate) fn told_effect(record: &StudyRecord, subject: Subject, to: Subject) -> String {
    let ratios = ratios(record, subject, to);
    match effect::interval(record, &ratios) {
        None if !ratios.is_empty() => {
            let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
            format!("{} % ({})", percent(median(&ratios)), range(&ratios, percent))
        }
        interval => effect::told(interval),
    }
}

fn ratios(record: &StudyRecord, subject: Subject, to: Subject) -> Vec<f64> {
    let (own, others) = (record.searches_of(subject), record.searches_of(to));
    let ratio = |(repeat, rate): (&usize, &f64)| Some(rate / others.get(repeat)?);
    // A baseline that never kept the bound has no ratio.
    own.iter().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect()
}

fn range(values: &[f64], text: impl Fn(f64) -> String) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} to {}", text(least), text(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SearchRecord;

    const BASELINE: Subject = Subject { program: 0, row: 0 };
    const ROW: Subject = Subject { program: 0, row: 1 };

    /// The second row has twice the rate of the first in every repeat, which differ.
    fn searched(repeats: usize) -> StudyRecord {
        let mut record = crate::testing::record(8);
        let search = |repeat, row: usize| SearchRecord {
            program: 0,
            row,
            repeat,
            rate: (1000.0 + repeat as f64 * 10.0) * (row + 1) as f64,
            steps: 9,
        };
        record.searches = (0..repeats).flat_map(|at| [search(at, 0), search(at, 1)]).collect();
        record
    }

    #[test]
    fn rates_are_compared_within_a_repeat() {
        let record = searched(8);
        assert_eq!(told(&record, ROW), "2070 [2000 2140]");
        assert_eq!(told_effect(&record, ROW, BASELINE), "+100.0 % [+100.0 +100.0]");
        assert!(ratio(&record, ROW, BASELINE).is_some_and(|ratio| ratio.low == 2.0));
    }

    #[test]
    fn a_few_searches_have_a_range() {
        let record = searched(3);
        assert_eq!(told(&record, BASELINE), "1010 (1000 to 1020)");
        assert_eq!(told_effect(&record, ROW, BASELINE), "+100.0 % (+100.0 to +100.0)");
        assert_eq!(ratio(&record, ROW, BASELINE), None);
        assert_eq!(told(&searched(0), ROW), "not searched");
        assert_eq!(told_effect(&searched(0), ROW, BASELINE), "too few turns");
    }

    #[test]
    fn a_baseline_that_never_kept_the_bound_has_no_ratio() {
        let mut record = searched(3);
        record.searches.iter_mut().filter(|of| of.row == 0).for_each(|of| of.rate = 0.0);
        assert_eq!(told_effect(&record, ROW, BASELINE), "too few turns");
    }
}
