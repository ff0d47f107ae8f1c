//! One turn of a subject: its results, and the resources it used.

use std::fs;
use std::thread;
use std::time::Duration;

use processes::procfs::{self, Traffic};

use super::subject::RunningSubject;
use crate::figures::MeasuredRun;
use crate::hosts;

/// From this share of time on a processor, the generator may limit the rate.
const GENERATOR_BUSY: f64 = 0.95;
/// From these shares of the machine's time on, other machines or processes count as a disturbance.
const STOLEN: f64 = 0.05;
const OTHERS: f64 = 0.15;

/// Runs a turn and returns all its figures.
pub(super) fn turn(running: &mut RunningSubject) -> Result<MeasuredRun, String> {
    let before = Account::now(running)?;
    let (pid, half) = (running.pid, Duration::from_millis(running.turn.turn_ms / 2));
    let (mut measured, sockets) = thread::scope(|scope| {
        let sockets = scope.spawn(|| {
            thread::sleep(half);
            procfs::socket_counts(pid).unwrap_or_default()
        });
        let turn = running.generator.turn()?;
        Ok::<_, String>((turn, sockets.join().unwrap_or_default()))
    })?;
    let after = Account::now(running)?;
    measured.sockets = sockets.in_use;
    measured.time_wait = sockets.time_wait;
    after.tell_since(&before, &mut measured);
    measured.memory_bytes = procfs::memory(running.pid)?;
    Ok(measured)
}

/// The marks of a turn during which the machine disturbed the measurement. Errors of the server are
/// not a reason for a mark; they are counted.
pub(super) fn marks(measured: &MeasuredRun, pinned: bool) -> Vec<String> {
    let marks = [
        ("generator", pinned && measured.generator_busy >= GENERATOR_BUSY && measured.busy < 0.9),
        ("stolen", measured.stolen >= STOLEN),
        ("others", measured.others >= OTHERS),
    ];
    marks.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name.to_owned()).collect()
}

/// The resources used so far.
struct Account {
    cpu_s: f64,
    /// CPU time in user space and in the kernel.
    ticks: (u64, u64),
    switches: u64,
    traffic: Traffic,
    machine: MachineTime,
    /// CPU seconds of the study's own processes: server, backends, generator.
    own_s: f64,
}

impl Account {
    fn now(running: &RunningSubject) -> Result<Self, String> {
        let pid = running.pid;
        let cpu_s = procfs::cpu_s(pid)?;
        let others = running.backends.iter().filter(|backend| backend.pid() != pid);
        let backends_s: f64 = others.filter_map(|of| procfs::cpu_s(of.pid()).ok()).sum();
        Ok(Self {
            cpu_s,
            ticks: procfs::ticks(pid),
            switches: procfs::switches(pid),
            traffic: procfs::traffic(pid, hosts::counts)?,
            machine: MachineTime::now(),
            own_s: cpu_s + backends_s + procfs::cpu_s(running.generator.pid())?,
        })
    }

    fn tell_since(&self, before: &Self, measured: &mut MeasuredRun) {
        // JSON has finite numbers only, so a turn without replies must not divide by zero.
        let (requests, seconds) = (measured.requests.max(1) as f64, measured.seconds);
        let cpu_s = (self.cpu_s - before.cpu_s).max(0.0);
        measured.cpu_us = cpu_s * 1e6 / requests;
        measured.busy = cpu_s / seconds;
        // A worker that ended in between takes its ticks with it.
        let user = self.ticks.0.saturating_sub(before.ticks.0);
        let system = self.ticks.1.saturating_sub(before.ticks.1);
        let user_share = user as f64 / (user + system).max(1) as f64;
        measured.user_us = measured.cpu_us * user_share;
        measured.system_us = measured.cpu_us - measured.user_us;
        measured.switches = self.switches.saturating_sub(before.switches) as f64 / requests;
        let rate = |of: fn(&Traffic) -> u64| {
            of(&self.traffic).saturating_sub(of(&before.traffic)) as f64 / seconds
        };
        measured.packets_in = rate(|traffic| traffic.packets_in);
        measured.packets_out = rate(|traffic| traffic.packets_out);
        measured.bytes_in = rate(|traffic| traffic.bytes_in);
        measured.bytes_out = rate(|traffic| traffic.bytes_out);
        measured.stolen = self.machine.stolen_since(&before.machine);
        let busy = self.machine.busy_since(&before.machine);
        measured.others =
            (busy - self.machine.share_since(&before.machine, self.own_s - before.own_s)).max(0.0);
    }
}

/// The machine's CPU time in ticks.
struct MachineTime {
    all: u64,
    idle: u64,
    stolen: u64,
}

const TICKS_PER_SECOND: f64 = 100.0;

impl MachineTime {
    fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the line `cpu  user nice system idle iowait irq softirq steal ...`.
    fn read(stat: &str) -> Self {
        let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or_default();
        Self { all: ticks.iter().sum(), idle: at(3) + at(4), stolen: at(7) }
    }

    fn ticks_since(&self, before: &Self) -> f64 {
        self.all.saturating_sub(before.all).max(1) as f64
    }

    fn stolen_since(&self, before: &Self) -> f64 {
        self.stolen.saturating_sub(before.stolen) as f64 / self.ticks_since(before)
    }

    /// The share of the machine's time in which its processors were busy, for this study or
    /// otherwise.
    fn busy_since(&self, before: &Self) -> f64 {
        let idle = (self.idle + self.stolen).saturating_sub(before.idle + before.stolen);
        1.0 - idle as f64 / self.ticks_since(before)
    }

    fn share_since(&self, before: &Self, seconds: f64) -> f64 {
        seconds * TICKS_PER_SECOND / self.ticks_since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_marked_for_disturbances_by_the_machine() {
        let run = |change: fn(&mut MeasuredRun)| {
            let mut run = MeasuredRun { busy: 0.5, ..MeasuredRun::default() };
            change(&mut run);
            marks(&run, true)
        };
        assert_eq!(run(|_| {}), [""; 0]);
        assert_eq!(run(|run| run.generator_busy = 0.99), ["generator"]);
        assert_eq!(run(|run| (run.generator_busy, run.busy) = (0.99, 0.99)), [""; 0]);
        assert_eq!(run(|run| (run.stolen, run.errors) = (0.1, 1)), ["stolen"]);
        assert_eq!(run(|run| run.others = 0.2), ["others"]);
    }

    #[test]
    fn the_machines_time_is_read() {
        let before = MachineTime::read("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2 3\n");
        let after = MachineTime::read("cpu  20 0 20 140 0 0 0 20 9 9\n");
        assert_eq!((before.all, before.stolen), (100, 10));
        assert_eq!(after.stolen_since(&before), 0.1);
        assert!((after.busy_since(&before) - 0.2).abs() < 1e-9);
        assert_eq!(after.share_since(&before, 0.2), 0.2);
        assert_eq!(MachineTime::read("").stolen_since(&before), 0.0);
    }
}
