//! A study: a configuration with blanks, what is put into them, and the load.
//!
//! It is a TOML file. Each row of its table says in what it differs from the first, or from the
//! row it is based on; a factorial study has a row for every combination instead. docs/lab.md
//! explains the format.

mod builtin;
mod check;
mod factor;
mod load;
mod rows;
mod setting;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use builtin::BUILT_IN;
pub(crate) use factor::{Factor, FactorTarget};
pub(crate) use load::StudyLoad;
pub(crate) use rows::StudyRow;
pub(crate) use setting::{HostNames, RowSetting, StudyPlaces};

/// What a study's file says.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Study {
    pub(crate) title: String,
    /// Where the question comes from.
    #[serde(default)]
    pub(crate) source: String,
    /// What is measured, and how to read it.
    pub(crate) explanation: String,
    /// The configuration, with `%%factor%%` in its blanks.
    pub(crate) template: String,
    /// The columns of its table; none: the usual ones.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// The factors of which every combination is a row.
    #[serde(default)]
    pub(crate) factorial: Vec<String>,
    /// The factor with numbers for levels by which a chart shows how rates scale.
    #[serde(default)]
    pub(crate) scaling: Option<String>,
    pub(crate) load: StudyLoad,
    /// The test backends behind the servers; most studies need none.
    #[serde(default)]
    pub(crate) backend: StudyBackends,
    #[serde(default)]
    pub(crate) blocks: StudyBlocks,
    #[serde(rename = "factor")]
    pub(crate) factors: BTreeMap<String, Factor>,
    #[serde(default, rename = "row")]
    pub(crate) rows: Vec<StudyRow>,
    /// What the source has found in rows of a factorial study.
    #[serde(default)]
    pub(crate) found: BTreeMap<String, String>,
}

/// Backends behind each server: a `weir backend` each.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyBackends {
    pub(crate) count: usize,
    /// Options of `weir backend`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
}

/// The fewest blocks with which an interval can hold in 95 of 100 studies: of fewer, all ratios are
/// too often on one side.
pub(crate) const BLOCKS_MIN: usize = 6;

/// How often each row has its turn.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyBlocks {
    pub(crate) quick: usize,
    pub(crate) full: usize,
}

impl Default for StudyBlocks {
    fn default() -> Self {
        Self { quick: 12, full: 40 }
    }
}

impl Study {
    /// Reads a study and checks it; `file` is its name in messages.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let mut study: Self = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        match check::problem(&study).or_else(|| study.combine().or_else(|| check::rows(&study))) {
            Some(problem) => Err(format!("{file}: {problem}")),
            None => Ok(study),
        }
    }

    /// The row of a name, and its place.
    pub(crate) fn row(&self, name: &str) -> Option<(usize, &StudyRow)> {
        self.rows.iter().enumerate().find(|(_, row)| row.name == name)
    }

    /// The row that another is compared with.
    pub(crate) fn baseline_of(&self, row: usize) -> usize {
        let name = self.rows.get(row).and_then(|row| row.compared_with.as_ref());
        name.and_then(|name| self.row(name)).map_or(0, |(place, _)| place)
    }

    /// A row's name in tables and charts: with what it is compared, unless that is the first.
    pub(crate) fn label(&self, row: usize) -> String {
        let of = |row: usize| self.rows.get(row).map_or("", |row| &row.name);
        match self.baseline_of(row) {
            0 => of(row).to_owned(),
            base => format!("{} (to {})", of(row), of(base)),
        }
    }
}

#[cfg(test)]
mod tests;
