//! One turn of a subject: its results, and the resources it used.

use std::time::Duration;

use processes::machine::{MachineShares, MachineTime, SoftirqTime};

use super::machines::StudyMachines;
use super::part::{PartAccount, ServingPart};
use super::subject::RunningSubject;
use crate::figures::MeasuredRun;
use crate::hosts::HostRole;

/// From this share of time on a processor, the generator may limit the rate.
const GENERATOR_BUSY: f64 = 0.95;

/// Runs a turn and returns all its figures.
pub(super) fn turn(
    running: &mut RunningSubject,
    machines: &StudyMachines,
) -> Result<MeasuredRun, String> {
    machines.keep_alive()?;
    let middle = Duration::from_millis(running.load.turn.turn_ms / 2);
    let beside = BesideTime::now(running, machines)?;
    let before = front(running)?.begin_turn(middle)?;
    let mut measured = running.generator.turn()?;
    let after = front(running)?.end_turn()?;
    let beside = BesideTime::now(running, machines)?.since(&beside);
    tell_generator(beside.generator_s, &mut measured);
    tell(&before, &after, after.cpu_s - before.cpu_s + beside.shared_s, &mut measured);
    let idle = running.idle.as_ref();
    measured.idle_memory_bytes = idle.map_or(0.0, |idle| idle.bytes_each(measured.memory_bytes));
    Ok(measured)
}

fn front(running: &mut RunningSubject) -> Result<&mut Box<dyn ServingPart>, String> {
    running.front().ok_or_else(|| "there is nothing to measure".to_owned())
}

/// CPU seconds of the parts that are not measured.
struct BesideTime {
    generator_s: f64,
    /// Of those on the machine of the measured one.
    shared_s: f64,
}

impl BesideTime {
    fn now(running: &mut RunningSubject, machines: &StudyMachines) -> Result<Self, String> {
        let measured = running.measured;
        let generator_s = running.generator.cpu_s()?;
        let mut shared_s = 0.0;
        if machines.share(measured, HostRole::Backend) {
            // A measured backend is the first.
            let skipped = usize::from(measured == HostRole::Backend);
            for backend in running.backends.iter_mut().skip(skipped) {
                shared_s += backend.cpu_s().unwrap_or_default();
            }
        }
        if machines.share(measured, HostRole::Client) {
            shared_s += generator_s;
        }
        Ok(Self { generator_s, shared_s })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            generator_s: self.generator_s - before.generator_s,
            shared_s: self.shared_s - before.shared_s,
        }
    }
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

/// Adds the figures of the generator's process, which used `generator_s` seconds.
fn tell_generator(generator_s: f64, measured: &mut MeasuredRun) {
    measured.generator_us = generator_s * 1e6 / measured.requests.max(1) as f64;
    if measured.generator_busy == 0.0 && measured.seconds > 0.0 {
        // Another generator does not tell; it has one thread.
        measured.generator_busy = (generator_s / measured.seconds).min(1.0);
    }
}

/// Adds the figures of the server's processes and their machine, of whose time the study itself
/// used `own_s` seconds.
fn tell(before: &PartAccount, after: &PartAccount, own_s: f64, measured: &mut MeasuredRun) {
    // JSON has finite numbers only, so a turn without replies or length must not divide by zero.
    let requests = measured.requests.max(1) as f64;
    let per_second = if measured.seconds > 0.0 { 1.0 / measured.seconds } else { 0.0 };
    let cpu_s = (after.cpu_s - before.cpu_s).max(0.0);
    measured.cpu_us = cpu_s * 1e6 / requests;
    measured.busy = cpu_s * per_second;
    // A worker that ended in between takes its ticks with it.
    let user = after.ticks.0.saturating_sub(before.ticks.0);
    let system = after.ticks.1.saturating_sub(before.ticks.1);
    let user_share = user as f64 / (user + system).max(1) as f64;
    measured.user_us = measured.cpu_us * user_share;
    measured.system_us = measured.cpu_us - measured.user_us;
    measured.switches = after.switches.saturating_sub(before.switches) as f64 / requests;
    // A worker that ended in between takes its waits with it, too.
    measured.run_delay_us = (after.run_delay_s - before.run_delay_s).max(0.0) * 1e6 / requests;
    let softirq = |(all, softirq)| SoftirqTime { all, softirq };
    measured.softirq = softirq(after.softirq).share_since(&softirq(before.softirq));
    let rate =
        |of: fn(&PartAccount) -> u64| of(after).saturating_sub(of(before)) as f64 * per_second;
    measured.packets_in = rate(|account| account.packets_in);
    measured.packets_out = rate(|account| account.packets_out);
    measured.bytes_in = rate(|account| account.bytes_in);
    measured.bytes_out = rate(|account| account.bytes_out);
    measured.memory_bytes = after.memory_bytes;
    (measured.sockets, measured.time_wait) = (after.sockets, after.time_wait);
    measured.established = after.established;
    let time = |(all, idle, stolen)| MachineTime { all, idle, stolen };
    let shares = time(after.machine).shares_since(&time(before.machine), own_s);
    (measured.stolen, measured.others) = (shares.stolen, shares.others);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_without_replies_has_finite_figures() {
        let mut measured = MeasuredRun::default();
        let after = PartAccount { cpu_s: 0.1, packets_in: 5, ..PartAccount::default() };
        tell_generator(0.1, &mut measured);
        tell(&PartAccount::default(), &after, 0.1, &mut measured);
        let json = serde_json::to_string(&measured).unwrap();
        assert!(!json.contains("null"), "{json}");
        assert!((measured.cpu_us - 100_000.0).abs() < 1e-6 && measured.busy == 0.0);
    }

    #[test]
    fn waits_and_softirqs_are_those_of_the_turn() {
        let mut measured = MeasuredRun { requests: 10, seconds: 1.0, ..MeasuredRun::default() };
        let account =
            |softirq, run_delay_s| PartAccount { softirq, run_delay_s, ..PartAccount::default() };
        tell(&account((100, 10), 0.5), &account((300, 60), 0.75), 0.0, &mut measured);
        assert_eq!((measured.softirq, measured.run_delay_us), (0.25, 25_000.0));
        tell_generator(0.5, &mut measured);
        assert_eq!((measured.generator_us, measured.generator_busy), (50_000.0, 0.5));
        measured.generator_busy = 0.75;
        tell_generator(0.5, &mut measured);
        assert_eq!(measured.generator_busy, 0.75, "a generator that tells knows better");
    }

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
