//! The content of a study's file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Factor, FactorTarget, StudyLoad, StudyNeeds, StudyRow};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Study {
    pub(crate) title: String,
    /// The source of the question.
    #[serde(default)]
    pub(crate) source: String,
    /// A description of the measurement and of its interpretation.
    pub(crate) explanation: String,
    /// The configuration, with `%%factor%%` in its blanks.
    pub(crate) template: String,
    /// The columns of the study's table; if empty, the usual ones.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// The factors whose combinations are the rows.
    #[serde(default)]
    pub(crate) factorial: Vec<String>,
    /// The factor with numeric levels whose scaling a chart shows.
    #[serde(default)]
    pub(crate) scaling: Option<String>,
    /// The machine that the study is meant for; empty if any will do.
    #[serde(default)]
    pub(crate) needs: StudyNeeds,
    pub(crate) load: StudyLoad,
    /// The test backends behind each server; most studies need none.
    #[serde(default)]
    pub(crate) backend: StudyBackends,
    #[serde(default)]
    pub(crate) blocks: StudyBlocks,
    #[serde(rename = "factor")]
    pub(crate) factors: BTreeMap<String, Factor>,
    #[serde(default, rename = "row")]
    pub(crate) rows: Vec<StudyRow>,
    /// The source's findings for rows of a factorial study, by the row's name.
    #[serde(default)]
    pub(crate) found: BTreeMap<String, String>,
}

/// The backends behind each server, each a `weir backend` process.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyBackends {
    pub(crate) count: usize,
    /// Options of `weir backend`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Whether each also returns datagrams, at an address of its own.
    #[serde(default)]
    pub(crate) udp: bool,
}

/// The fewest blocks whose interval can be right in 95 of 100 studies: with fewer, all ratios are
/// too often on one side.
pub(crate) const BLOCKS_MIN: usize = 6;

/// The number of turns of each row, for `--quick` and `--full`.
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
    /// The row of a name, and its index.
    pub(crate) fn row(&self, name: &str) -> Option<(usize, &StudyRow)> {
        self.rows.iter().enumerate().find(|(_, row)| row.name == name)
    }

    /// Whether its rows differ by the generator, which is then what it measures.
    pub(crate) fn compares_generators(&self) -> bool {
        self.factors.values().any(|factor| factor.sets == FactorTarget::Generator)
    }

    /// The row that a row is compared with.
    pub(crate) fn baseline_of(&self, row: usize) -> usize {
        let name = self.rows.get(row).and_then(|row| row.compared_with.as_ref());
        name.and_then(|name| self.row(name)).map_or(0, |(place, _)| place)
    }

    /// A row's name in tables and charts, with the name of its baseline unless that is the first
    /// row.
    pub(crate) fn label(&self, row: usize) -> String {
        let of = |row: usize| self.rows.get(row).map_or("", |row| &row.name);
        match self.baseline_of(row) {
            0 => of(row).to_owned(),
            base => format!("{} (to {})", of(row), of(base)),
        }
    }
}
