//! What the kernel accounts to processes: CPU time, memory, children (proc(5)).

use std::fs;
use std::ops::{Add, Div, Sub};

/// Unit of the times in /proc/PID/stat; fixed by the kernel's ABI on the machines we know.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time in seconds, or after a division per something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cpu {
    pub(super) user: f64,
    pub(super) sys: f64,
}

impl Cpu {
    pub(super) fn total(self) -> f64 {
        self.user + self.sys
    }
}

impl Add for Cpu {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { user: self.user + other.user, sys: self.sys + other.sys }
    }
}

impl Sub for Cpu {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { user: self.user - other.user, sys: self.sys - other.sys }
    }
}

impl Div<f64> for Cpu {
    type Output = Self;
    fn div(self, by: f64) -> Self {
        Self { user: self.user / by, sys: self.sys / by }
    }
}

/// A process and all that descend from it.
pub(super) fn family(pid: u32) -> Vec<u32> {
    let mut members = vec![pid];
    let mut next = 0;
    while next < members.len() {
        members.extend(children(members[next]));
        next += 1;
    }
    members
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// What a process and its descendants have used so far.
pub(super) fn cpu(pid: u32) -> Result<Cpu, String> {
    let mut each = family(pid).into_iter().map(|pid| stat(&pid.to_string(), 11));
    each.try_fold(Cpu::default(), |sum, cpu| Ok(sum + cpu?))
}

/// What the children of this process that it has waited for have used so far.
pub(super) fn cpu_of_the_ended() -> Result<Cpu, String> {
    stat("self", 13)
}

/// Two neighbouring times of /proc/PID/stat, counted from the field after the name.
fn stat(pid: &str, field: usize) -> Result<Cpu, String> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    times(&text, field).ok_or_else(|| format!("{path}: {text}"))
}

/// The name may hold spaces and brackets, so fields are counted from its last bracket.
fn times(stat: &str, field: usize) -> Option<Cpu> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(field);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some(Cpu { user: seconds()?, sys: seconds()? })
}

/// Bytes a process and its descendants have taken, what they share counted once: the proportional
/// set size without pages of files, whose share also hangs on who else runs the same program.
pub(super) fn memory(pid: u32) -> Result<f64, String> {
    let mut bytes = 0.0;
    for pid in family(pid) {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
        bytes +=
            taken(&text).ok_or_else(|| format!("{path} has no Pss_Anon: Linux 5.9 is needed"))?;
    }
    Ok(bytes)
}

fn taken(rollup: &str) -> Option<f64> {
    let kilobytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    };
    Some((kilobytes("Pss_Anon:")? + kilobytes("Pss_Shmem:")?) * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 300 50 20 0 1 0 99";
        assert_eq!(times(stat, 11), Some(Cpu { user: 1.5, sys: 0.25 }));
        assert_eq!(times(stat, 13), Some(Cpu { user: 3.0, sys: 0.5 }));
        assert_eq!(times("7 (a) S 1", 11), None);
    }

    #[test]
    fn memory_is_what_was_taken_not_what_was_mapped() {
        let rollup = "55c0 [rollup]\nRss:  12 kB\nPss:    8 kB\nPss_Anon:    2 kB\n\
                      Pss_File:    5 kB\nPss_Shmem:   1 kB\n";
        assert_eq!(taken(rollup), Some(3.0 * 1024.0));
        assert_eq!(taken("Pss: 8 kB\n"), None);
    }

    #[test]
    fn a_family_has_its_grandchildren() {
        // They end when their standard input does.
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sh -c 'cat; :'; :"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let begin = std::time::Instant::now();
        while family(shell.id()).len() < 3 && begin.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        let members = family(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("a child of ours");
        assert_eq!(members.len(), 3);
    }
}
