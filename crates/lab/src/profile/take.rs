//! Taking a profile: turns under `perf record`, and one more under `perf stat`.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use processes::procfs;

use super::counts::{self, COUNTED, LOCK_WAIT_US, LOCK_WAITS};
use super::locks;
use super::stacks;
use super::{PERF, PerfProcess, ProfileRecord};
use crate::hosts;

/// The server's CPU time that is sampled, over several turns, ...
const SAMPLED_S: f64 = 3.0;
/// ... and the most time of load for that.
const LOAD_MAX_MS: u64 = 12_000;

/// Samples of stacks. The programs have no frame pointers, so each sample has a copy of the user
/// space's stack, which is unwound by the programs' tables; a Weir worker's is up to 32 KB deep.
const RECORD: [&str; 10] =
    ["record", "-q", "-N", "-B", "-m", "2M", "-F", "999", "--call-graph", "dwarf,32768"];

/// Refuses before anything is measured if no profile can be taken.
pub(crate) fn check() -> Result<(), String> {
    if !hosts::is_root() {
        return Err("--profile needs root: perf(1) sees kernel and servers only as root".to_owned());
    }
    trial(PERF)
}

/// Samples a program that ends at once.
fn trial(perf: &str) -> Result<(), String> {
    let folder = PerfFolder::new()?;
    let mut command = Command::new(perf);
    command.args(RECORD).arg("-o").arg(folder.data()).args(["--", "true"]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        format!("--profile needs perf(1), in Debian's package linux-perf: {perf}: {error}")
    })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("--profile: perf takes no samples here: {}", first_line(&output))),
    }
}

/// Takes the profile of a server. `turn` runs a turn of load and returns the number of requests.
/// What cannot be taken is left out, with the reason.
pub(crate) fn take(
    pid: u32,
    turn_ms: u64,
    turn: &mut dyn FnMut() -> Result<u64, String>,
) -> ProfileRecord {
    let failed = |why| ProfileRecord { failure: Some(why), ..ProfileRecord::default() };
    let turns_max = LOAD_MAX_MS.div_ceil(turn_ms.max(1));
    let mut profile = sample(pid, turns_max, turn).unwrap_or_else(failed);
    if let Err(why) = count(pid, turn, &mut profile) {
        profile.failure.get_or_insert(why);
    }
    let counted = |key: &str| profile.per_request.contains_key(key);
    let missing = COUNTED.iter().filter(|event| !counted(event.key));
    profile.missing = missing.map(|event| event.name.to_owned()).collect();
    profile
}

fn sample(
    pid: u32,
    turns_max: u64,
    turn: &mut dyn FnMut() -> Result<u64, String>,
) -> Result<ProfileRecord, String> {
    let folder = PerfFolder::new()?;
    let data = folder.data().display().to_string();
    let perf = PerfProcess::attach(pid, &[&RECORD[..], &["-o", &data]].concat())?;
    PerfProcess::wait_for_begin();
    let begun_s = procfs::cpu_s(pid)?;
    for _ in 0..turns_max {
        turn()?;
        if procfs::cpu_s(pid)? - begun_s >= SAMPLED_S {
            break;
        }
    }
    let output = perf.stop()?;
    let script = script(&data, &["--no-inline", "-F", "event,ip,sym,dso"])?;
    let profile = stacks::read(&script);
    match profile.samples() {
        0 => Err(format!("perf took no samples: {}", first_line(&output))),
        _ => Ok(profile),
    }
}

/// Counts events and waits for locks during one turn.
fn count(
    pid: u32,
    turn: &mut dyn FnMut() -> Result<u64, String>,
    profile: &mut ProfileRecord,
) -> Result<(), String> {
    let folder = PerfFolder::new()?;
    let data = folder.data().display().to_string();
    let stat = PerfProcess::attach(pid, &["stat", "-x,", "-e", &counts::events()])?;
    let record = ["record", "-q", "-N", "-B", "-c", "1", "-e", locks::EVENTS, "-o", &data];
    let record = PerfProcess::attach(pid, &record)?;
    PerfProcess::wait_for_begin();
    let requests = turn()?.max(1) as f64;
    let stat = stat.stop()?;
    record.stop()?;
    let counts = counts::read(&String::from_utf8_lossy(&stat.stderr));
    let per_request = counts.into_iter().map(|(key, count)| (key, count / requests));
    profile.per_request.extend(per_request);
    // On a kernel without these tracepoints perf leaves no data.
    if let Ok(script) = script(&data, &["--ns", "-F", "tid,time,event,trace"]) {
        let waits = locks::read(&script);
        let waits =
            [(LOCK_WAITS, waits.count as f64), (LOCK_WAIT_US, waits.seconds * 1e6)].into_iter();
        profile.per_request.extend(waits.map(|(key, sum)| (key.to_owned(), sum / requests)));
    }
    Ok(())
}

fn script(data: &str, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(PERF);
    command.args(["script", "-i", data]).args(words).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{PERF}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("perf script: {}", first_line(&output))),
    }
}

fn first_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| output.status.to_string(), str::to_owned)
}

/// A folder for perf's data, which only this user can read. Dropping it removes it; after a kill,
/// the next `weir lab` does.
struct PerfFolder(PathBuf);

impl PerfFolder {
    fn new() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-lab-{}-perf-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn data(&self) -> PathBuf {
        Path::new(&self.0).join("perf.data")
    }
}

impl Drop for PerfFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn without_perf_nothing_begins() {
        let told = super::trial("/no/such/perf").unwrap_err();
        let begin = "--profile needs perf(1), in Debian's package linux-perf: /no/such/perf: ";
        assert!(told.starts_with(begin), "{told}");
        let told = super::trial("false").unwrap_err();
        assert_eq!(told, "--profile: perf takes no samples here: exit status: 1");
        assert_eq!(super::trial("true"), Ok(()));
    }
}
