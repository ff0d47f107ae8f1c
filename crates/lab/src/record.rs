//! The results of a run, as they are kept in a file and read by reports.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::figures::MeasuredRun;
use crate::profile::ProfileRecord;
use crate::study::{Study, StudyRow};

/// The version of the format; it changes with the meaning of fields.
pub(crate) const FORMAT: &str = "weir lab 2";

/// Blocks after which all servers are restarted, so that intervals include differences between
/// starts, such as the layout of memory and the distribution of connections.
pub(crate) const BLOCKS_OF_A_START: usize = 8;

/// A study with all its turns.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StudyRecord {
    pub(crate) format: String,
    pub(crate) name: String,
    pub(crate) study: Study,
    /// The command that repeats the run.
    pub(crate) command: String,
    pub(crate) machine: MachineRecord,
    /// A description of the hosts.
    pub(crate) hosts: String,
    /// The machines of agents.
    #[serde(default)]
    pub(crate) agents: Vec<AgentRecord>,
    pub(crate) programs: Vec<ProgramRecord>,
    /// The blocks that were requested.
    pub(crate) blocks: usize,
    pub(crate) turns: Vec<TurnRecord>,
    /// System calls per request, counted in one turn of each row whose other figures are not used.
    pub(crate) calls: Vec<CallsRecord>,
    /// Where the CPU time of each row goes, sampled in extra turns if that was asked for.
    #[serde(default)]
    pub(crate) profiles: Vec<ProfileRecord>,
    /// The highest rates that keep the study's bound on latency.
    #[serde(default)]
    pub(crate) searches: Vec<SearchRecord>,
    /// The looks at a study that may stop early; `None` for one that takes all its blocks.
    #[serde(default)]
    pub(crate) looks: Option<StudyLooks>,
    /// The comparison with an earlier run, if there is one.
    #[serde(default)]
    pub(crate) baseline: Option<BaselineRecord>,
    /// Rows that were not measured.
    #[serde(default)]
    pub(crate) left_out: Vec<LeftOutRecord>,
    /// Further lines for the report.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
}

/// A row that a program does not have, because this machine lacks something for it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LeftOutRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    pub(crate) why: String,
}

/// The name of the count of all system calls.
pub(crate) const ALL_CALLS: &str = "all";

/// The system calls of a row on one program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct CallsRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    pub(crate) per_request: BTreeMap<String, f64>,
}

/// The result of a search.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SearchRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    pub(crate) repeat: usize,
    /// The highest rate that kept the bound; 0 if none did.
    pub(crate) rate: f64,
    /// The number of rates that were tried.
    pub(crate) steps: usize,
}

/// The looks at a study that may stop early.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct StudyLooks {
    /// The number of looks if it does not.
    pub(crate) most: usize,
    /// The probability of error of each.
    pub(crate) error: f64,
    /// The looks that were taken.
    pub(crate) taken: usize,
    /// Whether the last of them has decided all limits.
    pub(crate) decided: bool,
}

/// The comparison of a record's first program with that of an earlier record.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct BaselineRecord {
    pub(crate) file: String,
    /// The earlier program, and when it was measured.
    pub(crate) program: ProgramRecord,
    pub(crate) began_unix_s: u64,
    pub(crate) effects: Vec<BaselineEffect>,
}

/// The ratio of a row's figure to that of the earlier run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct BaselineEffect {
    pub(crate) row: usize,
    /// The figure's name in the columns of a study.
    pub(crate) figure: String,
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A row on one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) program: usize,
    pub(crate) row: usize,
}

/// The machine, and when the run began.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MachineRecord {
    pub(crate) system: String,
    pub(crate) processor: String,
    pub(crate) processors: usize,
    pub(crate) began_unix_s: u64,
}

/// The machine of an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct AgentRecord {
    /// As in `--host`.
    pub(crate) place: String,
    /// `client`, `server`, `backend`
    pub(crate) parts: Vec<String>,
    pub(crate) system: String,
    pub(crate) processor: String,
    pub(crate) processors: usize,
    /// How far its clock is ahead of this machine's, and by how much that may be wrong.
    pub(crate) clock_offset_us: f64,
    pub(crate) clock_error_us: f64,
}

/// A server program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ProgramRecord {
    /// The name in tables.
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) version: String,
    /// The size and age of the file, which tell builds of a version apart.
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
    /// Why the turn may not be representative: `generator`, `stolen`, `others`.
    pub(crate) marks: Vec<String>,
    /// How often the turn was repeated because of marks.
    pub(crate) repeats: usize,
    /// Requests that failed or had a status other than 2xx, including those of repeated turns.
    #[serde(default)]
    pub(crate) all_errors: u64,
}

impl MachineRecord {
    /// This machine, now.
    pub(crate) fn of_this_machine() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processor = text("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
        let processor = processor.and_then(|line| line.split_once(':'));
        let processor = processor.map_or("", |(_, name)| name);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            system: format!("Linux {}", text("/proc/sys/kernel/osrelease").trim()),
            processor: processor.trim().to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            began_unix_s: now.map_or(0, |time| time.as_secs()),
        }
    }
}

impl StudyRecord {
    /// The turns of one row on one program, by block.
    pub(crate) fn turns_of(&self, program: usize, row: usize) -> BTreeMap<usize, &TurnRecord> {
        let own = self.turns.iter().filter(|turn| (turn.program, turn.row) == (program, row));
        own.map(|turn| (turn.block, turn)).collect()
    }

    /// The highest rates that searches found, by repeat.
    pub(crate) fn searches_of(&self, subject: Subject) -> BTreeMap<usize, f64> {
        let is_own = |of: &&SearchRecord| (of.program, of.row) == (subject.program, subject.row);
        self.searches.iter().filter(is_own).map(|of| (of.repeat, of.rate)).collect()
    }

    pub(crate) fn rows(&self) -> &[StudyRow] {
        &self.study.rows
    }

    /// Whether a program has turns of a row.
    pub(crate) fn has(&self, subject: Subject) -> bool {
        let (program, row) = (&self.programs[subject.program], &self.rows()[subject.row]);
        let is_left_out =
            |out: &LeftOutRecord| (out.program, out.row) == (subject.program, subject.row);
        program.can_have(row) && !self.left_out.iter().any(is_left_out)
    }

    /// Every row of every program.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        let rows = 0..self.rows().len();
        let all = (0..self.programs.len())
            .flat_map(move |program| rows.clone().map(move |row| Subject { program, row }));
        all.filter(|subject| self.has(*subject))
    }

    /// The number of blocks with all their turns.
    pub(crate) fn complete_blocks(&self) -> usize {
        let each = self.subjects().count();
        let count = |block: usize| self.turns.iter().filter(|turn| turn.block == block).count();
        (0..self.blocks).take_while(|block| count(*block) == each).count()
    }

    /// Drops the turns of a block that was interrupted.
    pub(crate) fn keep_complete_blocks(&mut self) {
        let complete = self.complete_blocks();
        self.turns.retain(|turn| turn.block < complete);
    }

    /// Whether blocks are missing that were to be measured.
    pub(crate) fn is_interrupted(&self) -> bool {
        let is_decided = self.looks.as_ref().is_some_and(|looks| looks.decided);
        !is_decided && self.complete_blocks() < self.blocks
    }
}

impl ProgramRecord {
    /// Whether the program can run a row: the row's `only` must be in its version, such as `weir
    /// version: weir/0.1.0`.
    pub(crate) fn can_have(&self, row: &StudyRow) -> bool {
        row.only.as_ref().is_none_or(|name| self.version.contains(name.as_str()))
    }
}
