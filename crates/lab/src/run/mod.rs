//! `weir lab run`: the rows of a study in short turns, in random order, block after block.
//!
//! Before any measurement, the study is read, the programs are found, and each program tests the
//! configuration of each row. Then all servers run at once, idle except in their turns of load.

mod arguments;
mod backend;
mod calls;
pub(crate) mod folder;
mod foreign;
pub(crate) mod generator;
mod idle;
mod measure;
pub(crate) mod program;
mod searches;
mod subject;
mod turn_generator;
mod turns;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

pub(crate) use arguments::wait_idle;
pub use arguments::{RunArguments, USAGE};
use folder::StudyFolder;
use processes::topology::ProcessorMap;
use program::ServerProgram;
use turns::TurnSettings;

use crate::baseline::StoredBaseline;
use crate::gate::{self, GateVerdict};
use crate::hosts::StudyNetwork;
use crate::profile;
use crate::record::{FORMAT, MachineRecord, StudyRecord};
use crate::study::{BUILT_IN, Study, StudySearch};
use crate::{progress, report};

/// The names and titles of the built-in studies.
pub fn list() -> String {
    let line = |(name, text): &(&str, &str)| {
        Study::parse(name, text)
            .map_or(String::new(), |study| format!("{name:18}  {}\n", study.title))
    };
    BUILT_IN.iter().map(line).collect()
}

/// The report for the terminal.
pub struct RunReport {
    pub text: String,
    /// The worst result of the limits; `None` if the run was interrupted, and there are no limits.
    pub verdict: Option<GateVerdict>,
}

/// Runs a study; `weir` is this program. If `interrupted` becomes true, the report is that of the
/// complete blocks.
pub fn run(
    arguments: &RunArguments,
    weir: &Path,
    words: &[OsString],
    interrupted: &AtomicBool,
) -> Result<RunReport, String> {
    // nginx inherits the limit.
    processes::server::raise_descriptors()?;
    let mut study = read(&arguments.study)?;
    study.keep_rows(&arguments.rows)?;
    let lacking = study.needs.lacks(&ProcessorMap::of_this_machine()?);
    if let Some(lacking) = lacking.as_ref().filter(|_| !arguments.anyway) {
        return Err(format!("{lacking}; --anyway runs it on this one"));
    }
    arguments.add_search(&mut study)?;
    let network = StudyNetwork::choose(&mut study, arguments.loopback)?;
    if arguments.profile {
        profile::check()?;
    }
    let programs = ServerProgram::all(arguments, weir)?;
    for program in &programs {
        program.check(&study)?;
    }
    let left_out = foreign::left_out(&study, programs.len())?;
    let folder = StudyFolder::open(arguments)?;
    let blocks = arguments.blocks_of(&study.blocks);
    let new = StudyRecord {
        format: FORMAT.to_owned(),
        name: arguments.study.clone(),
        command: command(words),
        machine: machine(),
        hosts: [network.told()].into_iter().chain(lacking).collect::<Vec<_>>().join("; "),
        programs: programs.iter().map(|program| program.record.clone()).collect(),
        blocks,
        turns: Vec::new(),
        calls: Vec::new(),
        profiles: Vec::new(),
        searches: Vec::new(),
        looks: arguments.looks(blocks),
        baseline: None,
        left_out,
        remarks: foreign::versions(&study)?,
        study,
    };
    let stored = arguments.baseline.as_deref().map(StoredBaseline::read).transpose()?;
    stored.iter().try_for_each(|stored| stored.check(&new))?;
    let mut record = folder.continued(&new)?.unwrap_or(new);
    let of_search = |search: &StudySearch| if arguments.quick { search.quick } else { search.full };
    let searches = record.study.search.as_ref().map_or(0, of_search);
    let with = TurnSettings {
        weir,
        wait_idle: arguments.wait_idle,
        profile: arguments.profile,
        interrupted,
        fail_if: &arguments.fail_if,
        searches,
    };
    let keep = &mut |record: &StudyRecord| folder.keep(record);
    turns::take(&mut record, &programs, &network, &with, keep)
        .and_then(|()| searches::take(&mut record, &programs, &network, &with, keep))
        .or_else(|why| if was_interrupted(interrupted) { Ok(()) } else { Err(why) })?;
    progress::show("");
    record.keep_complete_blocks();
    if record.turns.is_empty() {
        return Err("interrupted before the first block was complete".to_owned());
    }
    record.baseline = stored.and_then(|stored| stored.compare(&record));
    folder.write_reports(&record)?;
    report(&record, arguments, &folder)
}

/// The report for the terminal, with the results of all limits.
fn report(
    record: &StudyRecord,
    arguments: &RunArguments,
    folder: &StudyFolder,
) -> Result<RunReport, String> {
    let results = gate::results(record, &arguments.fail_if);
    if let Some(file) = &arguments.junit {
        let junit = gate::junit(&record.name, &results);
        fs::write(file, junit).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let (report, limits) = (report::text::of(record), gate::text(&results));
    let text = format!("{report}\n{limits}All results: {}\n", folder.path().display());
    let verdict = results.iter().map(|result| result.verdict).max();
    let verdict = verdict.or_else(|| (!record.is_interrupted()).then_some(GateVerdict::Passes));
    Ok(RunReport { text, verdict })
}

/// How much later than to the generators and servers a signal to all processes of a terminal may
/// come to this one.
const SIGNAL_MAX: Duration = Duration::from_millis(100);

/// Whether a failure is due to Ctrl-C, which ends the generators and servers as well.
fn was_interrupted(interrupted: &AtomicBool) -> bool {
    let is_set = || interrupted.load(Ordering::Relaxed);
    if !is_set() {
        sleep(SIGNAL_MAX);
    }
    is_set()
}

/// A built-in study, or one from a file.
fn read(name: &str) -> Result<Study, String> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Study::parse(name, text);
    }
    if !name.ends_with(".toml") {
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        return Err(format!("there is no study \"{name}\": name a .toml file, or one of {known}"));
    }
    let text = fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))?;
    Study::parse(name, &text)
}

fn command(words: &[OsString]) -> String {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    ["weir".to_owned(), "lab".to_owned(), "run".to_owned()]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn machine() -> MachineRecord {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = text("/proc/cpuinfo");
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.and_then(|line| line.split_once(':')).map_or("", |(_, name)| name);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    MachineRecord {
        system: format!("Linux {}", text("/proc/sys/kernel/osrelease").trim()),
        processor: processor.trim().to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        began_unix_s: now.map_or(0, |time| time.as_secs()),
    }
}

#[cfg(test)]
mod tests;
