//! Blocks of turns. Each block has one turn of every row of every program, in random order, so that
//! disturbances of the machine affect all of them alike.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use statistics::SplitMix;

use super::idle::IdleHolders;
use super::machines::StudyMachines;
use super::program::ServerProgram;
use super::subject::{RunningSubject, SubjectGround};
use super::{calls, measure};
use crate::figures::MeasuredRun;
use crate::gate::GateRule;
use crate::hosts::{HostRole, StudyNetwork};
use crate::profile::{self, ProfileRecord};
use crate::progress;
use crate::record::{BLOCKS_OF_A_START, LeftOutRecord, StudyRecord, Subject, TurnRecord};
use crate::sequential;

/// The most repeats of a disturbed turn.
const REPEATS_MAX: usize = 2;

/// What turns are taken with.
pub(super) struct TurnSettings<'t> {
    pub(super) machines: &'t StudyMachines,
    /// How long to wait while the machine is busy, before each block.
    pub(super) wait_idle: Option<Duration>,
    /// Whether to take profiles, unless the record already has them.
    pub(super) profile: bool,
    /// Set by Ctrl-C.
    pub(super) interrupted: &'t AtomicBool,
    /// The limits that a study which may stop early looks at.
    pub(super) fail_if: &'t [GateRule],
    /// The number of searches of each row.
    pub(super) searches: usize,
}

impl TurnSettings<'_> {
    /// An error after Ctrl-C.
    pub(super) fn go_on(&self) -> Result<(), String> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err("interrupted".to_owned()),
            false => Ok(()),
        }
    }
}

/// Takes the turns that the record lacks, and keeps the record after each block.
pub(super) fn take(
    record: &mut StudyRecord,
    programs: &[ServerProgram],
    network: &StudyNetwork,
    with: &TurnSettings<'_>,
    keep: &mut dyn FnMut(&StudyRecord) -> Result<(), String>,
) -> Result<(), String> {
    let first = record.complete_blocks();
    let profiles = with.profile && record.profiles.is_empty();
    let is_over = first == record.blocks || sequential::is_decided(record, with.fail_if);
    if is_over && !profiles {
        return Ok(());
    }
    let study = record.study.clone();
    let ground = SubjectGround { study: &study, network, machines: with.machines };
    let mut subjects = start(&ground, programs, record, with)?;
    if !record.study.load.errors {
        probe(record, &subjects, with.machines)?;
    }
    // Generators that are compared are meant to be the limit.
    let pinned = record.study.load.pinned && !record.study.compares_generators();
    warm_up(record, &mut subjects, with.machines)?;
    let left_out = open_idle(record, &mut subjects, with.machines)?;
    record.left_out.extend(left_out);
    let (begun, mut random) = (Instant::now(), SplitMix::new(record.machine.began_unix_s));
    let end = if is_over { first } else { record.blocks };
    for block in first..end {
        if block > first && block.is_multiple_of(BLOCKS_OF_A_START) {
            let closed = closed_idle(record, &mut subjects)?;
            record.remarks.extend(closed);
            subjects.clear();
            subjects = start(&ground, programs, record, with)?;
            warm_up(record, &mut subjects, with.machines)?;
            if let Some(out) = open_idle(record, &mut subjects, with.machines)?.first() {
                return Err(format!("row \"{}\": {}", record.rows()[out.row].name, out.why));
            }
        }
        if let Some(limit) = with.wait_idle {
            with.machines.wait_until_quiet(limit, &mut |shares| {
                progress::wait(shares);
                with.go_on().is_ok()
            })?;
        }
        random.shuffle(&mut subjects);
        for running in &mut subjects {
            with.go_on()?;
            let taken = TakenTurn::take(running, with.machines, pinned);
            let taken = taken.map_err(|why| named(record, running, &why))?;
            record.turns.push(taken.record(running.subject, block));
        }
        let is_decided = sequential::is_decided(record, with.fail_if);
        keep(record)?;
        if is_decided {
            break;
        }
        show_progress(begun.elapsed(), first, block + 1, end);
    }
    progress::show("");
    let closed = closed_idle(record, &mut subjects)?;
    record.remarks.extend(closed);
    record.calls = calls::count(&mut subjects, || with.go_on().is_ok());
    if profiles {
        keep(record)?;
        record.profiles = take_profiles(&mut subjects, with)?;
    }
    Ok(())
}

/// Shows how many blocks are done, and how long the others will take.
fn show_progress(elapsed: Duration, first: usize, done: usize, end: usize) {
    let each_s = elapsed.as_secs_f64() / (done - first) as f64;
    let left_s = each_s * (end - done) as f64;
    progress::show(&format!("block {done} of {end}, {left_s:.0} s left "));
}

fn take_profiles(
    subjects: &mut [RunningSubject],
    with: &TurnSettings<'_>,
) -> Result<Vec<ProfileRecord>, String> {
    let subjects = subjects.iter_mut().take_while(|_| with.go_on().is_ok());
    let profiles = subjects.map(profiled).collect();
    with.go_on().map(|()| profiles)
}

fn profiled(running: &mut RunningSubject) -> ProfileRecord {
    let Subject { program, row } = running.subject;
    let generator = &mut running.generator;
    let mut turn = || generator.turn().map(|measured| measured.requests);
    let profile = match running.pid {
        Some(pid) => profile::take(pid, running.load.turn.turn_ms, &mut turn),
        None => ProfileRecord {
            failure: Some("it runs on another machine".to_owned()),
            ..ProfileRecord::default()
        },
    };
    ProfileRecord { program, row, ..profile }
}

pub(super) fn start(
    ground: &SubjectGround<'_>,
    programs: &[ServerProgram],
    record: &StudyRecord,
    with: &TurnSettings<'_>,
) -> Result<Vec<RunningSubject>, String> {
    let mut subjects = Vec::new();
    for (program, of) in programs.iter().enumerate() {
        let rows = ground.study.rows.iter().enumerate();
        for (row, said) in rows.filter(|(row, _)| record.has(Subject { program, row: *row })) {
            with.go_on()?;
            ground.machines.keep_alive()?;
            let started = RunningSubject::start(ground, Subject { program, row }, of, said);
            subjects.push(started.map_err(|why| {
                format!("row \"{}\" does not start with {}: {why}", said.name, of.record.name)
            })?);
        }
    }
    Ok(subjects)
}

/// Sends one request to each subject: measuring a server that replies with errors would be useless.
fn probe(
    record: &StudyRecord,
    subjects: &[RunningSubject],
    machines: &StudyMachines,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    for running in subjects.iter().filter(|running| running.load.turn.has_statuses()) {
        let client = machines.of(HostRole::Client, &running.hosts);
        let status = client.probe(&running.load).map_err(|why| named(record, running, &why))?;
        if !status.starts_with('2') {
            let Subject { program, row } = running.subject;
            let (row, program) = (&record.rows()[row].name, &record.programs[program].name);
            let path = running.load.turn.path();
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

/// One turn whose figures are not used: connections, caches and the processor's frequency settle.
fn warm_up(
    record: &StudyRecord,
    subjects: &mut [RunningSubject],
    machines: &StudyMachines,
) -> Result<(), String> {
    for running in subjects {
        let turn = TakenTurn::take(running, machines, false);
        turn.map_err(|why| named(record, running, &why))?;
    }
    Ok(())
}

/// Opens the idle connections of all rows. Rows whose servers cannot have them end, and are
/// returned.
fn open_idle(
    record: &StudyRecord,
    subjects: &mut Vec<RunningSubject>,
    machines: &StudyMachines,
) -> Result<Vec<LeftOutRecord>, String> {
    let (mut open, mut left_out) = (Vec::new(), Vec::new());
    for mut running in subjects.drain(..) {
        let Subject { program, row } = running.subject;
        match running.open_idle(machines) {
            Ok(()) => open.push(running),
            Err(why) if row == 0 => return Err(named(record, &running, &why)),
            Err(why) => left_out.push(LeftOutRecord { program, row, why }),
        }
    }
    *subjects = open;
    Ok(left_out)
}

/// The rows whose idle connections were closed, as lines for the report.
fn closed_idle(
    record: &StudyRecord,
    subjects: &mut [RunningSubject],
) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for running in subjects {
        let closed = running.idle.as_mut().map_or(Ok(0), IdleHolders::closed)?;
        if closed > 0 {
            let why = format!("the server closed {closed} idle connections");
            lines.push(named(record, running, &why));
        }
    }
    Ok(lines)
}

/// A failure with the names of its row and program.
pub(super) fn named(record: &StudyRecord, running: &RunningSubject, why: &str) -> String {
    let Subject { program, row } = running.subject;
    format!("row \"{}\" with {}: {why}", record.rows()[row].name, record.programs[program].name)
}

/// A turn, repeated while the machine disturbs it. Errors are no reason for a repeat, because that
/// would select turns by their results.
struct TakenTurn {
    measured: MeasuredRun,
    marks: Vec<String>,
    repeats: usize,
    /// Errors, including those of the repeated turns.
    all_errors: u64,
}

impl TakenTurn {
    /// `pinned`: server and generator have a processor each.
    fn take(
        running: &mut RunningSubject,
        machines: &StudyMachines,
        pinned: bool,
    ) -> Result<Self, String> {
        let (mut repeats, mut all_errors) = (0, 0);
        loop {
            let measured = measure::turn(running, machines)?;
            all_errors += measured.errors;
            let marks = measure::marks(&measured, pinned);
            if marks.is_empty() || repeats == REPEATS_MAX {
                return Ok(Self { measured, marks, repeats, all_errors });
            }
            repeats += 1;
        }
    }

    fn record(self, subject: Subject, block: usize) -> TurnRecord {
        let Self { measured, marks, repeats, all_errors } = self;
        let Subject { program, row } = subject;
        TurnRecord { program, row, block, measured, marks, repeats, all_errors }
    }
}
