//! The rows of a study's table: listed, or all combinations of factors.

use std::collections::{BTreeMap, BTreeSet};

use super::{Study, StudyRow};

const NOTHING_LEFT: &str =
    "without the rows that need hosts of their own, there is nothing left to compare";

/// The most rows of a study.
pub(super) const ROWS_MAX: usize = 128;

impl Study {
    /// The levels of a row; those that it does not set are the baseline's, or those of the row it
    /// is based on.
    pub(crate) fn levels<'s>(&'s self, row: &'s StudyRow) -> BTreeMap<&'s str, &'s str> {
        let baseline = || {
            let factors = self.factors.iter();
            factors.map(|(name, factor)| (name.as_str(), factor.baseline.as_str())).collect()
        };
        let base = row.based_on.as_ref().and_then(|name| self.row(name));
        let mut levels = base.map_or_else(baseline, |(_, base)| self.levels(base));
        levels.extend(row.set.iter().map(|(name, level)| (name.as_str(), level.as_str())));
        levels
    }

    /// Creates the rows of a factorial study. A study that was written to a record already has
    /// them.
    pub(super) fn combine(&mut self) -> Option<String> {
        if self.factorial.is_empty() {
            return None;
        }
        let mut names: Vec<&String> = self.factorial.iter().collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("factorial names {} twice", twice[0]));
        }
        let counts = self.factorial.iter().map(|name| self.factors[name].levels.len() + 1);
        let product = counts.fold(1_usize, usize::saturating_mul);
        if product > ROWS_MAX {
            return Some(format!("factorial has more than {ROWS_MAX} combinations"));
        }
        let mut rows = vec![Vec::new()];
        for name in &self.factorial {
            let with = |row: Vec<(String, String)>| {
                let levels = self.factors[name].all_levels();
                levels.map(move |level| {
                    row.iter().cloned().chain([(name.clone(), level.to_owned())]).collect()
                })
            };
            rows = rows.into_iter().flat_map(with).collect();
        }
        let rows: Vec<StudyRow> = rows.into_iter().map(|set| self.combination(set)).collect();
        if !self.rows.is_empty() && self.rows != rows {
            return Some("a factorial study has all combinations for rows, and lists none".into());
        }
        self.rows = rows;
        let unknown = self.found.keys().find(|name| self.row(name).is_none());
        unknown.map(|name| format!("found names {name}, which is no combination"))
    }

    /// Keeps only the rows of these names, the first row, and those that they refer to.
    pub(crate) fn keep_rows(&mut self, names: &[String]) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        if !self.factorial.is_empty() {
            return Err("--row: a factorial study needs all its rows".to_owned());
        }
        if let Some(name) = names.iter().find(|name| self.row(name).is_none()) {
            let known: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
            return Err(format!("--row: there is no row \"{name}\", but {}", known.join(", ")));
        }
        let mut kept: BTreeSet<String> = names.iter().cloned().collect();
        kept.extend(self.rows.first().map(|row| row.name.clone()));
        // A row refers only to rows above it.
        for row in self.rows.iter().rev() {
            if kept.contains(&row.name) {
                kept.extend([&row.based_on, &row.compared_with].into_iter().flatten().cloned());
            }
        }
        self.rows.retain(|row| kept.contains(&row.name));
        Ok(())
    }

    /// Removes rows; the remaining rows must not refer to them.
    pub(crate) fn leave_out(&mut self, names: &[String]) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        if !self.factorial.is_empty()
            || self.rows.first().is_some_and(|row| names.contains(&row.name))
        {
            return Err(NOTHING_LEFT.to_owned());
        }
        self.rows.retain(|row| !names.contains(&row.name));
        if self.rows.len() < 2 {
            return Err(NOTHING_LEFT.to_owned());
        }
        for row in &self.rows {
            let others = [&row.based_on, &row.compared_with].into_iter().flatten();
            if let Some(other) = others.into_iter().find(|name| names.contains(name)) {
                let name = &row.name;
                return Err(format!(
                    "row \"{name}\" refers to row \"{other}\", which needs hosts of its own"
                ));
            }
        }
        Ok(())
    }

    fn combination(&self, set: Vec<(String, String)>) -> StudyRow {
        let words = set.iter().map(|(name, level)| format!("{name} {level}"));
        let name = words.collect::<Vec<_>>().join(", ");
        let found = self.found.get(&name).cloned();
        let differs = |(name, level): &(String, String)| self.factors[name].baseline != *level;
        let set = set.into_iter().filter(differs).collect();
        StudyRow { name, set, found, ..StudyRow::default() }
    }
}
