//! A study: a configuration with blanks, what is put into them, and the load.
//!
//! It is a TOML file. The first row is the baseline; every other row says in what it differs from
//! the baseline, or from the row it is based on. docs/lab.md explains the format.

mod builtin;
mod check;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use builtin::BUILT_IN;

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
    pub(crate) load: StudyLoad,
    /// The test backends behind the servers; most studies need none.
    #[serde(default)]
    pub(crate) backend: StudyBackends,
    #[serde(default)]
    pub(crate) blocks: StudyBlocks,
    #[serde(rename = "factor")]
    pub(crate) factors: BTreeMap<String, Factor>,
    #[serde(rename = "row")]
    pub(crate) rows: Vec<StudyRow>,
}

/// The load of each turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyLoad {
    pub(crate) connections: u32,
    #[serde(default = "root")]
    pub(crate) path: String,
    /// Whether each request has a connection of its own.
    #[serde(default)]
    pub(crate) close: bool,
    #[serde(default = "turn_ms")]
    pub(crate) turn_ms: u64,
    /// Whether server and generator each have a processor of their own; else the system places
    /// them, which is what rows with several workers need.
    #[serde(default = "pinned")]
    pub(crate) pinned: bool,
}

/// Backends that all servers share: addresses of one `weir backend`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyBackends {
    pub(crate) count: usize,
    /// Options of `weir backend`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
}

/// What of the load is another in a row.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowLoad {
    pub(crate) connections: Option<u32>,
    pub(crate) path: Option<String>,
    pub(crate) close: Option<bool>,
}

/// What is known only when a server is about to start.
#[derive(Clone, Copy)]
pub(crate) struct StudyPlaces<'p> {
    pub(crate) port: u16,
    pub(crate) dir: &'p str,
    pub(crate) backends: &'p [u16],
}

/// How often each row has its turn.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyBlocks {
    pub(crate) quick: usize,
    pub(crate) full: usize,
}

/// What may stand in one blank.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Factor {
    pub(crate) baseline: String,
    #[serde(default)]
    pub(crate) levels: Vec<String>,
}

/// A row of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyRow {
    pub(crate) name: String,
    /// The row whose levels it has, too; none: the baseline.
    #[serde(default)]
    pub(crate) based_on: Option<String>,
    /// The factors that differ, and their levels.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) load: RowLoad,
    /// Whether the load goes to the first backend, past the server.
    #[serde(default)]
    pub(crate) direct: bool,
    /// The effect that the source has found, as it says it.
    #[serde(default)]
    pub(crate) found: Option<String>,
}

/// What a template may have besides factors: the port to listen on, and a folder for files.
const BLANKS: [&str; 2] = ["port", "dir"];

fn root() -> String {
    "/".to_owned()
}

fn turn_ms() -> u64 {
    300
}

fn pinned() -> bool {
    true
}

impl Default for StudyBlocks {
    fn default() -> Self {
        Self { quick: 12, full: 40 }
    }
}

impl Study {
    /// Reads a study and checks it; `file` is its name in messages.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let study: Self = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        match check::problem(&study) {
            Some(problem) => Err(format!("{file}: {problem}")),
            None => Ok(study),
        }
    }

    /// The levels of a row, the baseline's where it says nothing.
    pub(crate) fn levels<'s>(&'s self, row: &'s StudyRow) -> BTreeMap<&'s str, &'s str> {
        let baseline = || {
            let factors = self.factors.iter();
            factors.map(|(name, factor)| (name.as_str(), factor.baseline.as_str())).collect()
        };
        let base = row.based_on.as_ref().and_then(|name| self.row(name));
        let mut levels = base.map_or_else(baseline, |base| self.levels(base));
        levels.extend(row.set.iter().map(|(name, level)| (name.as_str(), level.as_str())));
        levels
    }

    fn row(&self, name: &str) -> Option<&StudyRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The load of a row.
    pub(crate) fn load_of(&self, row: &StudyRow) -> StudyLoad {
        let (all, own) = (&self.load, &row.load);
        StudyLoad {
            connections: own.connections.unwrap_or(all.connections),
            path: own.path.clone().unwrap_or_else(|| all.path.clone()),
            close: own.close.unwrap_or(all.close),
            ..*all
        }
    }

    /// The configuration of a row.
    pub(crate) fn configuration(&self, row: &StudyRow, places: StudyPlaces<'_>) -> String {
        let mut text = self.template.clone();
        for (name, level) in self.levels(row) {
            text = text.replace(&format!("%%{name}%%"), level);
        }
        for (port, number) in places.backends.iter().zip(1..) {
            text = text.replace(&format!("%%backend{number}%%"), &format!("127.0.0.1:{port}"));
        }
        text.replace("%%port%%", &places.port.to_string()).replace("%%dir%%", places.dir)
    }
}

#[cfg(test)]
mod tests;
