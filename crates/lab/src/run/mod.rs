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
pub(crate) mod here;
mod idle;
mod machines;
mod measure;
pub(crate) mod part;
pub(crate) mod program;
mod role_host;
mod searches;
mod subject;
mod turns;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) use arguments::wait_idle;
pub use arguments::{RunArguments, USAGE};
use folder::StudyFolder;
use machines::StudyMachines;
use processes::topology::ProcessorMap;
use program::ServerProgram;
use turns::TurnSettings;

use crate::agent::AgentToken;
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
    let machines = machines(arguments, weir, &study)?;
    let network = network(arguments, &machines, &mut study)?;
    if study.search.is_some() {
        machines.check_search()?;
    }
    if arguments.profile {
        machines.check_profile()?;
        profile::check()?;
    }
    let servers = machines.servers();
    let programs = ServerProgram::all(arguments, &*servers)?;
    for program in &programs {
        program.check(&study, &*servers)?;
    }
    let folder = StudyFolder::open(arguments)?;
    let new = StudyRecord {
        command: command(words),
        hosts: [network.told()].into_iter().chain(lacking).collect::<Vec<_>>().join("; "),
        agents: machines.records(),
        ..new_record(arguments, study, &programs)?
    };
    let stored = arguments.baseline.as_deref().map(StoredBaseline::read).transpose()?;
    stored.iter().try_for_each(|stored| stored.check(&new))?;
    let mut record = folder.continued(&new)?.unwrap_or(new);
    let of_search = |search: &StudySearch| if arguments.quick { search.quick } else { search.full };
    let searches = record.study.search.as_ref().map_or(0, of_search);
    let with = TurnSettings {
        machines: &machines,
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

/// A record without turns, of this machine alone.
fn new_record(
    arguments: &RunArguments,
    study: Study,
    programs: &[ServerProgram],
) -> Result<StudyRecord, String> {
    let blocks = arguments.blocks_of(&study.blocks);
    Ok(StudyRecord {
        format: FORMAT.to_owned(),
        name: arguments.study.clone(),
        command: String::new(),
        machine: MachineRecord::of_this_machine(),
        hosts: String::new(),
        agents: Vec::new(),
        programs: programs.iter().map(|program| program.record.clone()).collect(),
        blocks,
        turns: Vec::new(),
        calls: Vec::new(),
        profiles: Vec::new(),
        searches: Vec::new(),
        looks: arguments.looks(blocks),
        baseline: None,
        left_out: foreign::left_out(&study, programs.len())?,
        remarks: foreign::versions(&study)?,
        study,
    })
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
const SIGNAL_MAX: Duration = Duration::from_secs(2);

/// Whether a failure is due to Ctrl-C, which ends the generators and servers as well.
fn was_interrupted(interrupted: &AtomicBool) -> bool {
    let until = Instant::now() + SIGNAL_MAX;
    while !interrupted.load(Ordering::Relaxed) {
        if Instant::now() >= until {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
    true
}

/// The machines of the study's parts.
fn machines(arguments: &RunArguments, weir: &Path, study: &Study) -> Result<StudyMachines, String> {
    let mut machines = StudyMachines::here(weir, study.backend.count > 0);
    let token = arguments.token_file.as_deref().map(AgentToken::read).transpose()?;
    let programs = arguments.servers.iter().filter(|name| *name != "weir").cloned();
    let programs: Vec<String> = programs.collect();
    machines.connect(&arguments.hosts, token.as_ref(), &programs)?;
    Ok(machines)
}

fn network(
    arguments: &RunArguments,
    machines: &StudyMachines,
    study: &mut Study,
) -> Result<StudyNetwork, String> {
    match machines.are_several() {
        true => StudyNetwork::agents(study, machines.told()),
        false => StudyNetwork::choose(study, arguments.loopback),
    }
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

#[cfg(test)]
mod tests;
