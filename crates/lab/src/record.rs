//! What a run of a study has measured, as it is kept in a file and read by reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::effect::Subject;
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
    /// Why it says less than others: `generator`, `stolen`, `others`, `errors`.
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
    /// The part of it in user space, and in the kernel.
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
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
    /// The share of the machine's time that processes had which are no part of the study.
    pub(crate) others: f64,
    /// What passed the server's network interfaces in a second; on loopback addresses, what passed
    /// between all.
    pub(crate) packets_in: f64,
    pub(crate) packets_out: f64,
    pub(crate) bytes_in: f64,
    pub(crate) bytes_out: f64,
    /// TCP sockets of the server's host in the middle of the turn, without TIME_WAIT and in it; on
    /// loopback addresses, of all parts.
    pub(crate) sockets: usize,
    pub(crate) time_wait: usize,
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
