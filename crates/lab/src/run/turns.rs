//! Blocks of turns. In each block every row of every program has one turn, in an order of its own;
//! what else the machine does meets all of them.

use std::path::Path;
use std::time::Instant;

use processes::server::Cores;
use statistics::SplitMix;

use super::program::ServerProgram;
use super::subject::{RunningSubject, SubjectGround};
use super::{calls, measure};
use crate::figures::MeasuredRun;
use crate::hosts::StudyNetwork;
use crate::progress;
use crate::record::{StudyRecord, Subject, TurnRecord};

/// Repeats of a turn that was disturbed.
const REPEATS_MAX: usize = 2;

/// Takes the turns that the record lacks. After each block the record is kept.
pub(super) fn take(
    record: &mut StudyRecord,
    programs: &[ServerProgram],
    network: &StudyNetwork,
    weir: &Path,
    keep: &mut dyn FnMut(&StudyRecord) -> Result<(), String>,
) -> Result<(), String> {
    let first = record.complete_blocks();
    if first == record.blocks {
        return Ok(());
    }
    let cores = if record.study.load.pinned { Some(Cores::of_this_machine()?) } else { None };
    let ground = SubjectGround { study: &record.study, network, weir, cores: cores.as_ref() };
    let mut subjects = start(&ground, programs)?;
    subjects.iter().try_for_each(|running| running.hosts.wait_for_links())?;
    if !record.study.load.errors {
        probe(record, &subjects, weir)?;
    }
    warm_up(record, &subjects, weir)?;
    let rules = TurnRules { weir, pinned: cores.is_some(), errors: record.study.load.errors };
    let (begun, mut random) = (Instant::now(), SplitMix::new(record.machine.began_unix_s));
    for block in first..record.blocks {
        random.shuffle(&mut subjects);
        for running in &subjects {
            let of_turn = turn(running, &rules);
            let (measured, marks, repeats) = of_turn.map_err(|why| named(record, running, &why))?;
            let Subject { program, row } = running.subject;
            record.turns.push(TurnRecord { program, row, block, measured, marks, repeats });
        }
        keep(record)?;
        let done = (block + 1 - first) as f64;
        let left = begun.elapsed().as_secs_f64() / done * (record.blocks - block - 1) as f64;
        let (block, blocks) = (block + 1, record.blocks);
        progress::show(&format!("block {block} of {blocks}, {left:.0} s left "));
    }
    progress::show("");
    record.calls = calls::count(&mut subjects, weir);
    Ok(())
}

fn start(
    ground: &SubjectGround<'_>,
    programs: &[ServerProgram],
) -> Result<Vec<RunningSubject>, String> {
    let mut subjects = Vec::new();
    for (program, of) in programs.iter().enumerate() {
        let rows = ground.study.rows.iter().enumerate();
        for (row, said) in rows.filter(|(_, row)| of.record.can_have(row)) {
            let started = RunningSubject::start(ground, Subject { program, row }, of, said);
            subjects.push(started.map_err(|why| {
                format!("row \"{}\" does not start with {}: {why}", said.name, of.record.name)
            })?);
        }
    }
    Ok(subjects)
}

/// Sends one request to each subject: what answers errors would be measured for nothing.
fn probe(record: &StudyRecord, subjects: &[RunningSubject], weir: &Path) -> Result<(), String> {
    let mut wrong = Vec::new();
    for running in subjects {
        let status = running.turn.probe(weir).map_err(|why| named(record, running, &why))?;
        if !status.starts_with('2') {
            let Subject { program, row } = running.subject;
            let (row, program) = (&record.rows()[row].name, &record.programs[program].name);
            let path = running.turn.path();
            wrong
                .push(format!("row \"{row}\": GET {path} was answered with {status} by {program}"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{ERRORS_HINT}", wrong.join("\n"))),
    }
}

const ERRORS_HINT: &str = "a study that expects this says errors = true below [load]";

/// One turn that does not count: connections, caches and the processor's frequency settle.
fn warm_up(record: &StudyRecord, subjects: &[RunningSubject], weir: &Path) -> Result<(), String> {
    for running in subjects {
        turn(running, &TurnRules { weir, pinned: false, errors: true })
            .map_err(|why| named(record, running, &why))?;
    }
    Ok(())
}

/// A failure with the row that it is of, and the program.
fn named(record: &StudyRecord, running: &RunningSubject, why: &str) -> String {
    let Subject { program, row } = running.subject;
    format!("row \"{}\" with {}: {why}", record.rows()[row].name, record.programs[program].name)
}

/// How turns are run, and which of them count as disturbed.
struct TurnRules<'r> {
    weir: &'r Path,
    /// Whether server and generator have a processor each.
    pinned: bool,
    /// Whether errors are expected.
    errors: bool,
}

impl TurnRules<'_> {
    fn marks(&self, measured: &MeasuredRun) -> Vec<String> {
        measure::marks(measured, self.pinned, self.errors)
    }
}

/// A turn, repeated while it is disturbed or has no reply at all: nginx with accept_mutex may wait
/// longer than a turn before it accepts.
fn turn(
    running: &RunningSubject,
    rules: &TurnRules<'_>,
) -> Result<(MeasuredRun, Vec<String>, usize), String> {
    for repeats in 0..REPEATS_MAX {
        if let Ok(measured) = measure::turn(running, rules.weir)
            && rules.marks(&measured).is_empty()
        {
            return Ok((measured, Vec::new(), repeats));
        }
    }
    let measured = measure::turn(running, rules.weir)?;
    let marks = rules.marks(&measured);
    Ok((measured, marks, REPEATS_MAX))
}
