//! Blocks of turns. In each block every row of every program has one turn, in an order of its own;
//! what else the machine does meets all of them.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use processes::procfs;
use processes::server::{Cores, MeasuredServer};
use statistics::SplitMix;

use super::backend::StudyBackend;
use super::folder::ServerFolder;
use super::generator;
use super::program::ServerProgram;
use crate::effect::Subject;
use crate::record::{MeasuredRun, StudyRecord, TurnRecord};
use crate::study::StudyLoad;

/// Repeats of a turn that was disturbed.
const REPEATS_MAX: usize = 2;
/// From this share of its time on, the generator may be what limits the rate.
const GENERATOR_BUSY: f64 = 0.95;
/// From this share of the machine's time on, others have disturbed the turn.
const STOLEN: f64 = 0.05;

/// A server that runs, or a backend in its place.
struct RunningSubject {
    subject: Subject,
    /// Whose CPU time counts.
    pid: u32,
    port: u16,
    load: StudyLoad,
    _server: Option<(MeasuredServer, ServerFolder)>,
}

/// Takes the turns that the record lacks. After each block the record is kept.
pub(super) fn take(
    record: &mut StudyRecord,
    programs: &[ServerProgram],
    weir: &Path,
    keep: &mut dyn FnMut(&StudyRecord) -> Result<(), String>,
) -> Result<(), String> {
    let first = record.complete_blocks();
    if first == record.blocks {
        return Ok(());
    }
    let cores = if record.study.load.pinned { Some(Cores::of_this_machine()?) } else { None };
    let backends = StudyBackend::start(weir, &record.study.backend, cores.as_ref())?;
    let mut subjects = start(record, programs, &backends, cores.as_ref())?;
    warm_up(&subjects, weir, cores.as_ref())?;
    let (begun, mut random) = (Instant::now(), SplitMix::new(record.machine.began_unix_s));
    for block in first..record.blocks {
        random.shuffle(&mut subjects);
        for running in &subjects {
            let (measured, marks, repeats) = turn(running, weir, cores.as_ref())?;
            let Subject { program, row } = running.subject;
            record.turns.push(TurnRecord { program, row, block, measured, marks, repeats });
        }
        keep(record)?;
        let done = (block + 1 - first) as f64;
        let left = begun.elapsed().as_secs_f64() / done * (record.blocks - block - 1) as f64;
        progress(block + 1, record.blocks, left);
    }
    Ok(())
}

fn start(
    record: &StudyRecord,
    programs: &[ServerProgram],
    backends: &StudyBackend,
    cores: Option<&Cores>,
) -> Result<Vec<RunningSubject>, String> {
    let mut subjects = Vec::new();
    for (program, of) in programs.iter().enumerate() {
        for (number, row) in record.rows().iter().enumerate() {
            let subject = Subject { program, row: number };
            let load = record.study.load_of(row);
            if row.direct {
                let (pid, port) = backends.first()?;
                subjects.push(RunningSubject { subject, pid, port, load, _server: None });
                continue;
            }
            let folder = ServerFolder::new()?;
            folder.write(&record.study, row, backends.ports())?;
            let file = folder.configuration();
            let server = match cores {
                Some(cores) => MeasuredServer::pinned(&of.path, cores.server, &file, folder.port),
                None => MeasuredServer::start(&of.path, &file, folder.port),
            }?;
            let (pid, port) = (server.pid(), folder.port);
            let _server = Some((server, folder));
            subjects.push(RunningSubject { subject, pid, port, load, _server });
        }
    }
    Ok(subjects)
}

/// One turn that does not count: connections, caches and the processor's frequency settle.
fn warm_up(subjects: &[RunningSubject], weir: &Path, cores: Option<&Cores>) -> Result<(), String> {
    for running in subjects {
        generator::turn(weir, &running.load, running.port, cores.map(|cores| cores.load))?;
    }
    Ok(())
}

/// A turn, repeated while it is disturbed.
fn turn(
    running: &RunningSubject,
    weir: &Path,
    cores: Option<&Cores>,
) -> Result<(MeasuredRun, Vec<String>, usize), String> {
    let mut repeats = 0;
    loop {
        let measured = measure(running, weir, cores)?;
        let marks = marks(&measured, cores.is_some());
        if marks.is_empty() || repeats == REPEATS_MAX {
            return Ok((measured, marks, repeats));
        }
        repeats += 1;
    }
}

fn measure(
    running: &RunningSubject,
    weir: &Path,
    cores: Option<&Cores>,
) -> Result<MeasuredRun, String> {
    let pid = running.pid;
    let before = (procfs::cpu_s(pid)?, procfs::switches(pid), MachineTime::now());
    let core = cores.map(|cores| cores.load);
    let mut measured = generator::turn(weir, &running.load, running.port, core)?;
    let cpu_s = procfs::cpu_s(pid)? - before.0;
    let requests = measured.requests as f64;
    measured.cpu_us = cpu_s * 1e6 / requests;
    measured.busy = cpu_s / measured.seconds;
    measured.switches = procfs::switches(pid).saturating_sub(before.1) as f64 / requests;
    measured.memory_bytes = procfs::memory(pid)?;
    measured.stolen = MachineTime::now().stolen_since(&before.2);
    Ok(measured)
}

/// Why a turn says less than others.
fn marks(measured: &MeasuredRun, pinned: bool) -> Vec<String> {
    let marks = [
        ("generator", pinned && measured.generator_busy >= GENERATOR_BUSY && measured.busy < 0.9),
        ("stolen", measured.stolen >= STOLEN),
        ("errors", measured.errors > 0),
    ];
    marks.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name.to_owned()).collect()
}

/// The machine's account of its time, in ticks.
struct MachineTime {
    all: u64,
    stolen: u64,
}

impl MachineTime {
    fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// `cpu  user nice system idle iowait irq softirq steal ...`
    fn read(stat: &str) -> Self {
        let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or_default() }
    }

    fn stolen_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        self.stolen.saturating_sub(before.stolen) as f64 / all.max(1) as f64
    }
}

/// On a terminal, a line that is written over.
fn progress(done: usize, blocks: usize, left_s: f64) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let end = if done == blocks { "\n" } else { "" };
        let _ = write!(stderr, "\rblock {done} of {blocks}, {left_s:.0} s left \x1b[K{end}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_turn_doubtful() {
        let run = |change: fn(&mut MeasuredRun)| {
            let mut run = MeasuredRun { busy: 0.5, ..MeasuredRun::default() };
            change(&mut run);
            marks(&run, true)
        };
        assert_eq!(run(|_| {}), [""; 0]);
        assert_eq!(run(|run| run.generator_busy = 0.99), ["generator"]);
        assert_eq!(run(|run| (run.generator_busy, run.busy) = (0.99, 0.99)), [""; 0]);
        assert_eq!(run(|run| (run.stolen, run.errors) = (0.1, 1)), ["stolen", "errors"]);
    }

    #[test]
    fn the_machines_time_is_read() {
        let before = MachineTime::read("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2 3\n");
        let after = MachineTime::read("cpu  20 0 20 140 0 0 0 20 9 9\n");
        assert_eq!((before.all, before.stolen), (100, 10));
        assert_eq!(after.stolen_since(&before), 0.1);
        assert_eq!(MachineTime::read("").stolen_since(&before), 0.0);
    }
}
