//! What a run of a study has measured, as it is kept in a file and read by reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures::MeasuredRun;
use crate::study::{Study, StudyRow};

/// The version of the format; another number is another meaning of fields.
pub(crate) const FORMAT: &str = "weir lab 2";

/// A study with all its turns.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StudyRecord {
    pub(crate) format: String,
    pub(crate) name: String,
    pub(crate) study: Study,
    /// The command that repeats it.
    pub(crate) command: String,
    pub(crate) machine: MachineRecord,
    /// What the hosts were.
    pub(crate) hosts: String,
    pub(crate) programs: Vec<ProgramRecord>,
    /// Blocks that were asked for.
    pub(crate) blocks: usize,
    pub(crate) turns: Vec<TurnRecord>,
    /// System calls, counted in a turn of each row that counts for nothing else.
    pub(crate) calls: Vec<CallsRecord>,
}

/// The name under which all system calls are counted.
pub(crate) const ALL_CALLS: &str = "all";

/// The system calls of a row on one program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct CallsRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    pub(crate) per_request: BTreeMap<String, f64>,
}

/// A row of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) program: usize,
    pub(crate) row: usize,
}

/// Where it ran.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MachineRecord {
    pub(crate) system: String,
    pub(crate) processor: String,
    pub(crate) processors: usize,
    pub(crate) began_unix_s: u64,
}

/// A server program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ProgramRecord {
    /// Its name in tables.
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) version: String,
    /// What tells it from another build of that version.
    pub(crate) build: String,
}

/// One turn of one row on one program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct TurnRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    pub(crate) block: usize,
    #[serde(flatten)]
    pub(crate) measured: MeasuredRun,
    /// What the machine did that makes it say less than others: `generator`, `stolen`, `others`.
    pub(crate) marks: Vec<String>,
    /// How often it was repeated because of marks.
    pub(crate) repeats: usize,
    /// Requests that failed or had another status than 2xx, those of repeated turns included.
    #[serde(default)]
    pub(crate) all_errors: u64,
}

impl StudyRecord {
    /// The turns of one row on one program, by block.
    pub(crate) fn turns_of(&self, program: usize, row: usize) -> BTreeMap<usize, &TurnRecord> {
        let own = self.turns.iter().filter(|turn| (turn.program, turn.row) == (program, row));
        own.map(|turn| (turn.block, turn)).collect()
    }

    /// The rows of its table.
    pub(crate) fn rows(&self) -> &[StudyRow] {
        &self.study.rows
    }

    /// Whether a program has turns of a row.
    pub(crate) fn has(&self, subject: Subject) -> bool {
        let (program, row) = (&self.programs[subject.program], &self.rows()[subject.row]);
        program.can_have(row)
    }

    /// Every row of every program.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        let rows = 0..self.rows().len();
        let all = (0..self.programs.len())
            .flat_map(move |program| rows.clone().map(move |row| Subject { program, row }));
        all.filter(|subject| self.has(*subject))
    }

    /// Blocks of which every turn is there.
    pub(crate) fn complete_blocks(&self) -> usize {
        let each = self.subjects().count();
        let count = |block: usize| self.turns.iter().filter(|turn| turn.block == block).count();
        (0..self.blocks).take_while(|block| count(*block) == each).count()
    }
}

impl ProgramRecord {
    /// Whether a row is meant for it: by the name in its version, as `weir version: weir/0.1.0`.
    pub(crate) fn can_have(&self, row: &StudyRow) -> bool {
        row.only.as_ref().is_none_or(|name| self.version.contains(name.as_str()))
    }
}
