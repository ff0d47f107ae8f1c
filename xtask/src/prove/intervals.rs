//! Whether the intervals of `weir lab run` contain the truth, with the noise of this machine.
//!
//! The truth is known twice: the two rows of the study `same` are equal, and are 5 % apart once the
//! figures of one are multiplied. A long run is cut into studies, and the program itself judges
//! each of them by `--fail-if`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{ProofFolder, ProofVerdict};
use crate::args::Args;
use crate::project;

/// The sizes of the studies that the run is cut into.
const SIZES: [usize; 3] = [12, 40, 160];

/// The figures whose intervals are judged: in the record, and in `--fail-if`.
const FIGURES: [(&str, &str); 3] = [("rate", "rate"), ("cpu_us", "cpu"), ("p99_us", "p99")];

/// What is planted, as a factor, and as `--fail-if` has it.
const PLANTED: [(f64, &str); 2] = [(1.0, "0%"), (1.05, "5%")];

/// Intervals of 95 % miss the truth so often.
const MISSED_SHARE: f64 = 0.05;

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let blocks = args.parsed("--blocks", 1200)?;
    let is_disturbed = args.flag("--disturb");
    let record = args.option("--record")?;
    args.end()?;
    let folder = ProofFolder::new("intervals")?;
    let weir = IntervalsPlan { weir: weir.into(), folder };
    let record = match &record {
        Some(file) => read(Path::new(file))?,
        None => weir.measure(blocks, is_disturbed)?,
    };
    let blocks = record["blocks"].as_u64().unwrap_or_default() as usize;
    println!("blocks  figure  planted  studies  truth missed  difference seen");
    let mut faults = Vec::new();
    for size in SIZES.into_iter().filter(|size| *size <= blocks) {
        for (field, figure) in FIGURES {
            for (factor, percent) in PLANTED {
                let judged = weir.judge(&record, size, (field, figure), (factor, percent))?;
                println!(
                    "{size:6}  {figure:6}  {percent:>7}  {:7}  {:12}  {:15}",
                    judged.studies, judged.missed, judged.seen
                );
                if judged.missed > likely_max(judged.studies) {
                    faults.push(format!(
                        "{figure}, {size} blocks, {percent} planted: {} of {} studies miss it",
                        judged.missed, judged.studies
                    ));
                }
            }
        }
    }
    if faults.is_empty() { Ok(ProofVerdict::Right) } else { Err(faults.join("\n")) }
}

/// So many of these studies miss the truth by chance at most: twice the standard deviation more
/// than expected.
fn likely_max(studies: usize) -> usize {
    let expected = studies as f64 * MISSED_SHARE;
    (expected + 2.0 * (expected * (1.0 - MISSED_SHARE)).sqrt()).floor() as usize
}

struct IntervalsPlan {
    weir: PathBuf,
    folder: ProofFolder,
}

/// How many studies there are, and what they say.
struct JudgedStudies {
    studies: usize,
    /// Studies whose interval does not contain the truth.
    missed: usize,
    /// Studies that see an effect.
    seen: usize,
}

impl IntervalsPlan {
    /// The record of the long run.
    fn measure(&self, blocks: usize, is_disturbed: bool) -> Result<Value, String> {
        let long = self.folder.join("long");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            if is_disturbed {
                scope.spawn(|| use_half_a_core(&is_over));
            }
            let measured = project::output(&mut self.lab(&long, blocks));
            is_over.store(true, Ordering::Relaxed);
            measured
        })?;
        read(&long.join("record.json"))
    }

    fn lab(&self, out: &Path, blocks: usize) -> Command {
        let mut lab = Command::new(&self.weir);
        lab.args(["lab", "run", "same", "--blocks", &blocks.to_string(), "--out"]).arg(out);
        lab
    }

    /// Cuts the record into studies of so many blocks, plants an effect on a figure, and asks the
    /// program about each.
    fn judge(
        &self,
        record: &Value,
        size: usize,
        (field, figure): (&str, &str),
        (factor, percent): (f64, &str),
    ) -> Result<JudgedStudies, String> {
        let turns = record["turns"].as_array().ok_or("the record has no turns")?;
        let studies = record["blocks"].as_u64().unwrap_or_default() as usize / size;
        let mut judged = JudgedStudies { studies, missed: 0, seen: 0 };
        for study in 0..studies {
            let mut part = record.clone();
            part["turns"] = cut(turns, study * size, size, field, factor);
            part["blocks"] = size.into();
            let out = self.folder.join("part");
            std::fs::create_dir_all(&out).map_err(|err| format!("{}: {err}", out.display()))?;
            self.folder.write("part/record.json", &part.to_string())?;
            let differs_from = |percent: &str| {
                self.fails(&out, size, &["<", ">"].map(|side| format!("{figure}{side}{percent}")))
            };
            judged.missed += usize::from(differs_from(percent)?);
            judged.seen += usize::from(differs_from("0%")?);
        }
        Ok(judged)
    }

    /// Whether one of the limits is surely broken.
    fn fails(&self, out: &Path, blocks: usize, limits: &[String]) -> Result<bool, String> {
        let mut lab = self.lab(out, blocks);
        for limit in limits {
            lab.args(["--fail-if", limit]);
        }
        lab.arg("--resume").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = lab.output().map_err(|err| format!("{}: {err}", self.weir.display()))?;
        match output.status.code() {
            Some(3) => Ok(true),
            Some(0 | 4) => Ok(false),
            _ => Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
        }
    }
}

fn read(file: &Path) -> Result<Value, String> {
    let text = std::fs::read(file).map_err(|err| format!("{}: {err}", file.display()))?;
    serde_json::from_slice(&text).map_err(|err| format!("{}: {err}", file.display()))
}

/// The turns of some blocks, numbered from 0, with a figure of the second row multiplied.
fn cut(turns: &[Value], first: usize, size: usize, field: &str, factor: f64) -> Value {
    let number = |turn: &Value, name: &str| turn[name].as_u64().unwrap_or_default() as usize;
    let is_in = |turn: &&Value| (first..first + size).contains(&number(turn, "block"));
    let turn = |turn: &Value| {
        let mut turn = turn.clone();
        turn["block"] = (number(&turn, "block") - first).into();
        if number(&turn, "row") == 1 {
            turn[field] = (turn[field].as_f64().unwrap_or_default() * factor).into();
        }
        turn
    };
    turns.iter().filter(is_in).map(turn).collect()
}

/// Another program on this machine: busy and idle for 20 ms each.
fn use_half_a_core(is_over: &AtomicBool) {
    const SPELL: Duration = Duration::from_millis(20);
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        while begun.elapsed() < SPELL {
            std::hint::spin_loop();
        }
        thread::sleep(SPELL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_cut_out_of_a_run() {
        let turn = |block: u64, row: u64| serde_json::json!({"block": block, "row": row, "a": 2.0});
        let turns: Vec<Value> = (0..6).flat_map(|block| [turn(block, 0), turn(block, 1)]).collect();
        let part = cut(&turns, 2, 2, "a", 1.5);
        let told: Vec<(u64, f64)> = part
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| (turn["block"].as_u64().unwrap(), turn["a"].as_f64().unwrap()))
            .collect();
        assert_eq!(told, [(0, 2.0), (0, 3.0), (1, 2.0), (1, 3.0)]);
    }

    #[test]
    fn chance_explains_some_misses() {
        assert_eq!([likely_max(100), likely_max(30), likely_max(7)], [9, 3, 1]);
    }
}
