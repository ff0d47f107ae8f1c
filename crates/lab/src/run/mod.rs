//! `weir lab run`: the rows of a study in short turns, in random order, block after block.
//!
//! Before any measurement, the study is read, the programs are found, and each program tests the
//! configuration of each row. Then all servers run at once, idle except in their turns of load.

mod arguments;
mod backend;
mod calls;
pub(crate) mod folder;
pub(crate) mod generator;
mod measure;
pub(crate) mod program;
mod searches;
mod subject;
mod turns;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

pub(crate) use arguments::wait_idle;
pub use arguments::{RunArguments, USAGE};
use folder::StudyFolder;
use program::ServerProgram;
use turns::TurnSettings;

use crate::baseline::StoredBaseline;
use crate::gate::{self, GateVerdict};
use crate::hosts::StudyNetwork;
use crate::record::{FORMAT, MachineRecord, StudyRecord};
use crate::report;
use crate::study::{BUILT_IN, Study, StudySearch};

/// The names and titles of the built-in studies.
pub fn list() -> String {
    let line = |(name, text): &(&str, &str)| {
        Study::parse(name, text)
            .map_or(String::new(), |study| format!("{name:14}  {}\n", study.title))
    };
    BUILT_IN.iter().map(line).collect()
}

/// The report for the terminal.
pub struct RunReport {
    pub text: String,
    /// The worst result of the limits.
    pub verdict: GateVerdict,
}

/// Runs a study; `weir` is this program.
pub fn run(arguments: &RunArguments, weir: &Path, words: &[OsString]) -> Result<RunReport, String> {
    // nginx inherits the limit.
    processes::server::raise_descriptors()?;
    let mut study = read(&arguments.study)?;
    arguments.add_search(&mut study)?;
    let network = StudyNetwork::choose(&mut study, arguments.loopback)?;
    let programs = ServerProgram::all(arguments, weir)?;
    for program in &programs {
        program.check(&study)?;
    }
    let folder = StudyFolder::open(arguments)?;
    let blocks = if arguments.quick { study.blocks.quick } else { study.blocks.full };
    let new = StudyRecord {
        format: FORMAT.to_owned(),
        name: arguments.study.clone(),
        command: command(words),
        machine: machine(),
        hosts: network.told(),
        programs: programs.iter().map(|program| program.record.clone()).collect(),
        blocks,
        turns: Vec::new(),
        calls: Vec::new(),
        searches: Vec::new(),
        looks: arguments.looks(blocks),
        baseline: None,
        study,
    };
    let stored = arguments.baseline.as_deref().map(StoredBaseline::read).transpose()?;
    stored.iter().try_for_each(|stored| stored.check(&new))?;
    let mut record = folder.continued(&new)?.unwrap_or(new);
    let of_search = |search: &StudySearch| if arguments.quick { search.quick } else { search.full };
    let searches = record.study.search.as_ref().map_or(0, of_search);
    let fail_if = &arguments.fail_if;
    let with = TurnSettings { weir, wait_idle: arguments.wait_idle, fail_if, searches };
    let keep = &mut |record: &StudyRecord| folder.keep(record);
    turns::take(&mut record, &programs, &network, &with, keep)?;
    searches::take(&mut record, &programs, &network, &with, keep)?;
    record.baseline = stored.and_then(|stored| stored.compare(&record));
    folder.write_reports(&record)?;
    let results = gate::judge(&record, &arguments.fail_if);
    if let Some(file) = &arguments.junit {
        let junit = gate::junit(&record.name, &results);
        fs::write(file, junit).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let (report, limits) = (report::text::of(&record), gate::text(&results));
    let text = format!("{report}\n{limits}All results: {}\n", folder.path().display());
    let verdict = results.iter().map(|result| result.verdict).max();
    Ok(RunReport { text, verdict: verdict.unwrap_or(GateVerdict::Passes) })
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
