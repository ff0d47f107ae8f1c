//! How busy the machine is beside a measurement: time taken by other processes, and by other
//! machines on the same hardware.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// From this share of the machine's time on, other machines are a disturbance, ...
const STOLEN_MAX: f64 = 0.05;
/// ... and other processes from this one.
const OTHERS_MAX: f64 = 0.15;
/// The length of a look at the machine while the measurement rests. It has 20 ticks on two
/// processors.
const LOOK: Duration = Duration::from_millis(100);
/// Between two looks while a busy machine is waited for.
const PAUSE: Duration = Duration::from_millis(800);
const TICKS_PER_SECOND: f64 = 100.0;

/// The machine's CPU time since it was started, in ticks.
pub struct MachineTime {
    pub all: u64,
    pub idle: u64,
    /// Taken by other machines on the same hardware.
    pub stolen: u64,
}

/// Shares of the machine's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineShares {
    /// Taken by other machines on the same hardware.
    pub stolen: f64,
    /// Taken by processes that are not part of the measurement.
    pub others: f64,
}

impl MachineTime {
    pub fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the line `cpu  user nice system idle iowait irq softirq steal ...`.
    fn read(stat: &str) -> Self {
        let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or_default();
        Self { all: ticks.iter().sum(), idle: at(3) + at(4), stolen: at(7) }
    }

    /// The shares since an earlier time, of which the measurement itself used `own_s` seconds.
    pub fn shares_since(&self, before: &Self, own_s: f64) -> MachineShares {
        let ticks = self.all.saturating_sub(before.all).max(1) as f64;
        let stolen = self.stolen.saturating_sub(before.stolen) as f64 / ticks;
        let idle = self.idle.saturating_sub(before.idle) as f64 / ticks;
        let others = 1.0 - idle - stolen - own_s * TICKS_PER_SECOND / ticks;
        MachineShares { stolen, others: others.max(0.0) }
    }
}

/// The time of some processors since the machine was started, in ticks.
pub struct SoftirqTime {
    pub all: u64,
    pub softirq: u64,
}

impl SoftirqTime {
    pub fn of(cores: &[usize]) -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default(), cores)
    }

    /// Adds up lines such as `cpu0 user nice system idle iowait irq softirq steal ...`.
    fn read(stat: &str, cores: &[usize]) -> Self {
        let of_cores = stat.lines().filter_map(|line| {
            let (core, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
            cores.contains(&core.parse().ok()?).then_some(ticks)
        });
        let mut sum = Self { all: 0, softirq: 0 };
        for line in of_cores {
            let words = line.split_whitespace().take(8);
            let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            sum.all += ticks.iter().sum::<u64>();
            sum.softirq += ticks.get(6).copied().unwrap_or_default();
        }
        sum
    }

    /// The share of time since `before` that went to softirqs: the kernel's part of network traffic
    /// and timers.
    pub fn share_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.softirq.saturating_sub(before.softirq) as f64 / all as f64
    }
}

impl MachineShares {
    /// Looks at the machine while the measurement rests.
    pub fn look() -> Self {
        let before = MachineTime::now();
        thread::sleep(LOOK);
        MachineTime::now().shares_since(&before, 0.0)
    }

    pub fn is_stolen(&self) -> bool {
        self.stolen >= STOLEN_MAX
    }

    pub fn has_others(&self) -> bool {
        self.others >= OTHERS_MAX
    }

    pub fn is_quiet(&self) -> bool {
        !self.is_stolen() && !self.has_others()
    }
}

/// Waits until the machine is quiet, for `limit` at most. `report` is called after each look at a
/// busy machine, and returns whether to go on waiting.
pub fn wait_until_quiet(
    limit: Duration,
    report: &mut dyn FnMut(MachineShares) -> bool,
) -> Result<(), String> {
    wait_until_all_quiet(limit, &mut MachineShares::look, report)
}

/// The same for several machines, of which `look` returns the shares of the busiest.
pub fn wait_until_all_quiet(
    limit: Duration,
    look: &mut dyn FnMut() -> MachineShares,
    report: &mut dyn FnMut(MachineShares) -> bool,
) -> Result<(), String> {
    let begun = Instant::now();
    wait(look, &mut || begun.elapsed() < limit, report).map_err(|shares| {
        let percent = |share: f64| (share * 100.0).round();
        format!(
            "the machine is not idle after {:.0} s: other processes use {} % of its time, other \
             machines {} %",
            limit.as_secs_f64(),
            percent(shares.others),
            percent(shares.stolen)
        )
    })
}

fn wait(
    look: &mut dyn FnMut() -> MachineShares,
    has_time: &mut dyn FnMut() -> bool,
    report: &mut dyn FnMut(MachineShares) -> bool,
) -> Result<(), MachineShares> {
    loop {
        let shares = look();
        if shares.is_quiet() {
            return Ok(());
        }
        if !has_time() {
            return Err(shares);
        }
        if !report(shares) {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs_of_the_named_processors_are_added_up() {
        let stat = |ticks: u64| {
            format!("cpu  9 9 9 9 9 9 9 9\ncpu0 1 0 0 5 0 0 {ticks} 0 7 7\ncpu1 1 0 0 1 0 0 0 8\n")
        };
        let of = |ticks, cores: &[usize]| SoftirqTime::read(&stat(ticks), cores);
        assert_eq!(of(12, &[0]).share_since(&of(4, &[0])), 1.0);
        assert_eq!((of(4, &[0, 1]).all, of(4, &[0, 1]).softirq), (20, 4));
        assert_eq!(of(4, &[7]).share_since(&of(4, &[7])), 0.0);
    }

    #[test]
    fn the_machines_time_is_read() {
        let before = MachineTime::read("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2 3\n");
        let after = MachineTime::read("cpu  20 0 20 140 0 0 0 20 9 9\n");
        let shares = after.shares_since(&before, 0.1);
        assert_eq!(shares.stolen, 0.1);
        assert!((shares.others - 0.1).abs() < 1e-9, "{shares:?}");
        assert_eq!(after.shares_since(&before, 9.0).others, 0.0);
        assert_eq!(MachineTime::read("").shares_since(&before, 0.0).stolen, 0.0);
    }

    #[test]
    fn a_busy_machine_is_waited_for_until_the_time_is_over() {
        let busy = MachineShares { others: 0.5, stolen: 0.0 };
        let mut looks = vec![MachineShares::default(), busy];
        let mut reports = 0;
        let mut look = || looks.pop().unwrap_or_default();
        let mut report = |_| {
            reports += 1;
            true
        };
        assert_eq!(wait(&mut look, &mut || true, &mut report), Ok(()));
        assert_eq!(reports, 1);
        let waited = wait(&mut || busy, &mut || false, &mut |_| true);
        assert_eq!(waited, Err(busy));
        assert_eq!(wait(&mut || busy, &mut || true, &mut |_| false), Ok(()), "given up");
    }
}
