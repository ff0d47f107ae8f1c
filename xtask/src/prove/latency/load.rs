//! `weir load` with the schedule's rate or without, and what it says that it has measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::figures::{Figures, names};
use super::schedule;
use crate::project;

const FILE: &str = "load.json";

/// What is read of the generator's JSON.
#[derive(Debug, PartialEq)]
pub(crate) struct GeneratorReport {
    pub(super) figures: Figures,
    pub(crate) requests: u64,
    /// By how much it started a request after its time at most, by its own account.
    pub(super) late_us: f64,
    /// And most of them at most.
    pub(crate) late_p99_us: f64,
    /// The share of its time that its busiest thread was on a CPU.
    pub(super) busiest_thread: f64,
}

/// Requests by the clock.
pub(super) fn open(
    weir: &Path,
    url: &str,
    seconds: u64,
    folder: &Path,
) -> Result<GeneratorReport, String> {
    let rate = format!("--rate={}", schedule::RATE);
    let connections = format!("-c{}", schedule::connections());
    report(
        weir_load(weir),
        &[&rate, &connections, &format!("-d{seconds}s"), url],
        &folder.join(FILE),
    )
}

/// Clients that wait for their replies.
pub(super) fn closed(
    weir: &Path,
    url: &str,
    seconds: u64,
    folder: &Path,
) -> Result<GeneratorReport, String> {
    let connections = format!("-c{}", schedule::clients());
    report(
        weir_load(weir),
        &["-t1", &connections, &format!("-d{seconds}s"), url],
        &folder.join(FILE),
    )
}

fn weir_load(weir: &Path) -> Command {
    let mut command = Command::new(weir);
    command.arg("load");
    command
}

/// Runs `weir load` with these options and reads the report that it writes into this file.
pub(crate) fn report(
    mut weir_load: Command,
    options: &[&str],
    file: &Path,
) -> Result<GeneratorReport, String> {
    weir_load.arg("--quiet").args(options).arg("--json").arg(file);
    project::output(&mut weir_load)?;
    let json = fs::read_to_string(file).map_err(|err| format!("{}: {err}", file.display()))?;
    GeneratorReport::read(&json)
}

impl GeneratorReport {
    fn read(json: &str) -> Result<Self, String> {
        let need = |path: &[&str]| {
            number(json, path).ok_or_else(|| format!("no {} in weir load's JSON", path.join(".")))
        };
        Ok(Self {
            figures: Figures(names().map(|name| number(json, &["latency_us", name]))),
            requests: need(&["replies"])? as u64,
            late_us: need(&["lateness_us", "max"])?,
            late_p99_us: need(&["lateness_us", "p99"])?,
            busiest_thread: need(&["busiest_thread"])?,
        })
    }

    pub(crate) fn p99_us(&self) -> f64 {
        self.figures.0[1].unwrap_or(f64::NAN)
    }
}

/// The number that is the value of the last of these names, each looked for after the one before:
/// enough for a file whose form is known.
fn number(json: &str, path: &[&str]) -> Option<f64> {
    let mut rest = json;
    for name in path {
        let quoted = format!("\"{name}\":");
        rest = &rest[rest.find(&quoted)? + quoted.len()..];
    }
    let end = rest.find([',', '}', ']'])?;
    rest[..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"format": "weir load 1", "busiest_thread": 0.01, "replies": 2400,
        "latency_us": {"mean": 1.5, "p50": 52255, "p99": 934399, "p99.9": 1044479, "max": 1054719,
        "counts": [[52000, 3]]}, "lateness_us": {"p99": 190, "max": 4069, "counts": []}}"#;

    #[test]
    fn what_is_read() {
        let figures = [52_255.0, 934_399.0, 1_044_479.0, 1_054_719.0].map(Some);
        let expected = GeneratorReport {
            figures: Figures(figures),
            requests: 2400,
            late_us: 4069.0,
            late_p99_us: 190.0,
            busiest_thread: 0.01,
        };
        assert_eq!(GeneratorReport::read(JSON), Ok(expected));
    }

    #[test]
    fn what_is_missing_is_named() {
        let cut = JSON.replace("lateness_us", "other");
        assert_eq!(
            GeneratorReport::read(&cut),
            Err("no lateness_us.max in weir load's JSON".into())
        );
    }
}
