//! What a run of a study has measured, as it is kept in a file and read by reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::study::{Study, StudyRow};

/// The version of the format; another number is another meaning of fields.
pub(crate) const FORMAT: &str = "weir lab 1";

/// A study with all its turns.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StudyRecord {
    pub(crate) format: String,
    pub(crate) name: String,
    pub(crate) study: Study,
    /// The command that repeats it.
    pub(crate) command: String,
    pub(crate) machine: MachineRecord,
    pub(crate) programs: Vec<ProgramRecord>,
    /// Blocks that were asked for.
    pub(crate) blocks: usize,
    pub(crate) turns: Vec<TurnRecord>,
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
}

/// One turn of one row on one program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct TurnRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    pub(crate) block: usize,
    #[serde(flatten)]
    pub(crate) measured: MeasuredRun,
    /// Why it says less than others: `generator`, `stolen`, `errors`.
    pub(crate) marks: Vec<String>,
    /// How often it was repeated because of marks.
    pub(crate) repeats: usize,
}

/// The figures of a turn.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct MeasuredRun {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) errors: u64,
    pub(crate) rate: f64,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
    /// CPU time of the server's processes for each request.
    pub(crate) cpu_us: f64,
    /// Processors that the server has used.
    pub(crate) busy: f64,
    /// What the server's processes have taken.
    pub(crate) memory_bytes: f64,
    /// Changes from one thread to another for each request.
    pub(crate) switches: f64,
    /// The share of its time that the generator's busiest thread was on a processor.
    pub(crate) generator_busy: f64,
    /// The share of the machine's time that others had (steal).
    pub(crate) stolen: f64,
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

    /// Blocks of which every turn is there.
    pub(crate) fn complete_blocks(&self) -> usize {
        let each = self.programs.len() * self.rows().len();
        let count = |block: usize| self.turns.iter().filter(|turn| turn.block == block).count();
        (0..self.blocks).take_while(|block| count(*block) == each).count()
    }
}
