//! One turn of a subject: its results, and the resources it used.

use std::time::Duration;

use processes::machine::{MachineShares, MachineTime};

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
    let beside_s = beside_s(running, machines)?;
    let before = front(running)?.begin_turn(middle)?;
    let mut measured = running.generator.turn()?;
    let after = front(running)?.end_turn()?;
    let own_s = after.cpu_s - before.cpu_s + self::beside_s(running, machines)? - beside_s;
    tell(&before, &after, own_s, &mut measured);
    Ok(measured)
}

fn front(running: &mut RunningSubject) -> Result<&mut Box<dyn ServingPart>, String> {
    running.front().ok_or_else(|| "there is nothing to measure".to_owned())
}

/// CPU seconds of the parts that share the machine of the measured one.
fn beside_s(running: &mut RunningSubject, machines: &StudyMachines) -> Result<f64, String> {
    let measured = running.measured;
    let mut seconds = 0.0;
    if machines.share(measured, HostRole::Backend) {
        // A measured backend is the first.
        let skipped = usize::from(measured == HostRole::Backend);
        for backend in running.backends.iter_mut().skip(skipped) {
            seconds += backend.cpu_s().unwrap_or_default();
        }
    }
    if machines.share(measured, HostRole::Client) {
        seconds += running.generator.cpu_s()?;
    }
    Ok(seconds)
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
        tell(&PartAccount::default(), &after, 0.1, &mut measured);
        let json = serde_json::to_string(&measured).unwrap();
        assert!(!json.contains("null"), "{json}");
        assert!((measured.cpu_us - 100_000.0).abs() < 1e-6 && measured.busy == 0.0);
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
