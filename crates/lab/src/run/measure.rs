//! One turn of a subject: its results, and the resources it used.

use std::thread;
use std::time::Duration;

use processes::machine::{MachineShares, MachineTime, SoftirqTime};
use processes::procfs::{self, Traffic};
use processes::server::allowed_cores_of;

use super::subject::RunningSubject;
use crate::figures::MeasuredRun;
use crate::hosts;

/// From this share of time on a processor, the generator may limit the rate.
const GENERATOR_BUSY: f64 = 0.95;
/// Runs a turn and returns all its figures.
pub(super) fn turn(running: &mut RunningSubject) -> Result<MeasuredRun, String> {
    let before = Account::now(running)?;
    let (pid, half) = (running.pid, Duration::from_millis(running.turn.turn_ms / 2));
    let (mut measured, sockets) = thread::scope(|scope| {
        let sockets = scope.spawn(|| {
            thread::sleep(half);
            let established = procfs::established(pid).unwrap_or_default();
            (procfs::socket_counts(pid).unwrap_or_default(), established)
        });
        let turn = running.generator.turn()?;
        Ok::<_, String>((turn, sockets.join().unwrap_or_default()))
    })?;
    let after = Account::now(running)?;
    let (sockets, established) = sockets;
    (measured.sockets, measured.time_wait) = (sockets.in_use, sockets.time_wait);
    measured.established = established;
    after.tell_since(&before, &mut measured);
    measured.memory_bytes = procfs::memory(running.pid)?;
    let idle = running.idle.as_ref();
    measured.idle_memory_bytes = idle.map_or(0.0, |idle| idle.bytes_each(measured.memory_bytes));
    Ok(measured)
}

/// The marks of a turn during which the machine disturbed the measurement. Errors of the server are
/// not a reason for a mark; they are counted.
pub(super) fn marks(measured: &MeasuredRun, pinned: bool) -> Vec<String> {
    let shares = MachineShares { stolen: measured.stolen, others: measured.others };
    let marks = [
        ("generator", pinned && measured.generator_busy >= GENERATOR_BUSY && measured.busy < 0.9),
        ("stolen", shares.is_stolen()),
        ("others", shares.has_others()),
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
    generator_s: f64,
    /// CPU seconds of the study's own processes: server, backends, generator.
    own_s: f64,
    softirq: SoftirqTime,
    run_delay_s: f64,
}

impl Account {
    fn now(running: &RunningSubject) -> Result<Self, String> {
        let pid = running.pid;
        let cpu_s = procfs::cpu_s(pid)?;
        let others = running.backends.iter().filter(|backend| backend.pid() != pid);
        let generator_s = running.generator.cpu_s()?;
        let backends_s: f64 = others.filter_map(|of| procfs::cpu_s(of.pid()).ok()).sum();
        Ok(Self {
            cpu_s,
            ticks: procfs::ticks(pid),
            switches: procfs::switches(pid),
            traffic: procfs::traffic(pid, hosts::counts)?,
            machine: MachineTime::now(),
            generator_s,
            own_s: cpu_s + backends_s + generator_s,
            softirq: SoftirqTime::of(&allowed_cores_of(pid)),
            run_delay_s: procfs::run_delay_s(pid),
        })
    }

    fn tell_since(&self, before: &Self, measured: &mut MeasuredRun) {
        // JSON has finite numbers only, so a turn without replies must not divide by zero.
        let (requests, seconds) = (measured.requests.max(1) as f64, measured.seconds);
        let cpu_s = (self.cpu_s - before.cpu_s).max(0.0);
        measured.cpu_us = cpu_s * 1e6 / requests;
        measured.busy = cpu_s / seconds;
        let generator_s = self.generator_s - before.generator_s;
        measured.generator_us = generator_s * 1e6 / requests;
        if measured.generator_busy == 0.0 {
            // Another generator does not tell; it has one thread.
            measured.generator_busy = (generator_s / seconds).min(1.0);
        }
        // A worker that ended in between takes its ticks with it.
        let user = self.ticks.0.saturating_sub(before.ticks.0);
        let system = self.ticks.1.saturating_sub(before.ticks.1);
        let user_share = user as f64 / (user + system).max(1) as f64;
        measured.user_us = measured.cpu_us * user_share;
        measured.system_us = measured.cpu_us - measured.user_us;
        measured.switches = self.switches.saturating_sub(before.switches) as f64 / requests;
        // A worker that ended in between takes its waits with it, too.
        let run_delay_s = (self.run_delay_s - before.run_delay_s).max(0.0);
        measured.run_delay_us = run_delay_s * 1e6 / requests;
        measured.softirq = self.softirq.share_since(&before.softirq);
        let rate = |of: fn(&Traffic) -> u64| {
            of(&self.traffic).saturating_sub(of(&before.traffic)) as f64 / seconds
        };
        measured.packets_in = rate(|traffic| traffic.packets_in);
        measured.packets_out = rate(|traffic| traffic.packets_out);
        measured.bytes_in = rate(|traffic| traffic.bytes_in);
        measured.bytes_out = rate(|traffic| traffic.bytes_out);
        let shares = self.machine.shares_since(&before.machine, self.own_s - before.own_s);
        (measured.stolen, measured.others) = (shares.stolen, shares.others);
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
}
