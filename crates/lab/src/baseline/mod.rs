//! `--baseline`: a comparison with the record of an earlier run, for a server that cannot be run
//! again.
//!
//! It is weaker than `--against`: without common blocks, a machine that is slower today looks like
//! a slower server. What can be told is told: the study, the machine and the hosts must be the
//! same, and the interval counts starts of the servers, not turns. A start's turns share what a
//! start decides, so that eight of them are hardly more than one.

mod stored;

use statistics::{Interval, median, ratio_of_means};
pub(crate) use stored::StoredBaseline;

use crate::figures::{CAPACITY, StudyMeasure, measures_with_effects};
use crate::record::{BLOCKS_OF_A_START, BaselineEffect, BaselineRecord, StudyRecord, Subject};

/// A start with fewer turns says too little.
const TURNS_OF_A_START_MIN: usize = BLOCKS_OF_A_START / 2;

impl BaselineRecord {
    /// The effect on a row's figure; `None` if there were too few starts.
    pub(crate) fn effect(&self, row: usize, figure: &str) -> Option<Interval> {
        let found = self.effects.iter().find(|of| of.row == row && of.figure == figure)?;
        Some(Interval { value: found.ratio, low: found.low, high: found.high })
    }

    fn of(file: &str, old: &StudyRecord, new: &StudyRecord) -> Option<Self> {
        let program = old.programs.first()?.clone();
        let rows = 0..new.rows().len();
        let subjects = rows.map(|row| Subject { program: 0, row });
        let subjects = subjects.filter(|subject| old.has(*subject) && new.has(*subject));
        let effects = subjects.flat_map(|subject| effects(old, new, subject));
        let (file, began_unix_s) = (file.to_owned(), old.machine.began_unix_s);
        Some(Self { file, program, began_unix_s, effects: effects.collect() })
    }
}

/// All effects of a row. A row's searches are starts of their own.
fn effects(old: &StudyRecord, new: &StudyRecord, subject: Subject) -> Vec<BaselineEffect> {
    let measured = measures_with_effects().map(|measure| {
        let [old, new] = [old, new].map(|record| starts(record, subject, measure));
        (measure.key, ratio_of_means(&old, &new))
    });
    let [a, b] = [old, new].map(|of| of.searches_of(subject).into_values().collect::<Vec<_>>());
    let all = measured.chain([(CAPACITY, ratio_of_means(&a, &b))]);
    let effect = |(figure, ratio): (&str, Option<Interval>)| {
        let Interval { value, low, high } = ratio?;
        let (row, figure) = (subject.row, figure.to_owned());
        Some(BaselineEffect { row, figure, ratio: value, low, high })
    };
    // JSON has no infinite numbers; an interval without an end says nothing.
    let effects = all.filter_map(effect);
    effects.filter(|of| [of.ratio, of.low, of.high].iter().all(|end| end.is_finite())).collect()
}

/// The median of a figure in each start of the servers.
fn starts(record: &StudyRecord, subject: Subject, measure: StudyMeasure) -> Vec<f64> {
    let mut starts = std::collections::BTreeMap::<usize, Vec<f64>>::new();
    for (block, turn) in record.turns_of(subject.program, subject.row) {
        starts.entry(block / BLOCKS_OF_A_START).or_default().push((measure.of)(&turn.measured));
    }
    let complete = starts.into_values().filter(|values| values.len() >= TURNS_OF_A_START_MIN);
    complete.map(|values| median(&values)).collect()
}

#[cfg(test)]
mod tests;
