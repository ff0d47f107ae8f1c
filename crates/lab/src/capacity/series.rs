//! Rows that differ only in a number: one series for each combination of the other factors.

use std::collections::BTreeMap;

use crate::record::{StudyRecord, Subject};
use crate::study::Study;

/// Rows that differ only in the number.
pub(crate) struct ScalingSeries {
    pub(crate) name: String,
    pub(crate) program: usize,
    /// The numbers in ascending order, each with its row.
    pub(crate) rows: Vec<(u32, usize)>,
}

impl ScalingSeries {
    /// The series of a program with at least two numbers; none unless the study names a factor that
    /// scales.
    pub(crate) fn all(record: &StudyRecord, program: usize) -> Vec<Self> {
        let Some(factor) = &record.study.scaling else { return Vec::new() };
        let study = &record.study;
        let mut groups = BTreeMap::<_, Self>::new();
        for (row, of) in study.rows.iter().enumerate() {
            let mut levels = study.levels(of);
            let number = levels.remove(factor.as_str()).and_then(|number| number.parse().ok());
            let can_have = !of.direct && record.has(Subject { program, row });
            let Some(number) = number.filter(|number| *number > 0 && can_have) else { continue };
            let key: Vec<_> = levels.into_iter().collect();
            let new = || Self { name: name(study, row, factor), program, rows: Vec::new() };
            groups.entry(key).or_insert_with(new).add(number, row);
        }
        groups.into_values().filter(|of| of.rows.len() > 1).collect()
    }

    /// Two rows may have the same number, if a study repeats its baseline; the first counts.
    fn add(&mut self, number: u32, row: usize) {
        if let Err(place) = self.rows.binary_search_by_key(&number, |of| of.0) {
            self.rows.insert(place, (number, row));
        }
    }
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
