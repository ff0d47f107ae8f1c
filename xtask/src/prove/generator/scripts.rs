//! wrk's scripts, run by wrk and by Weir called `wrk`.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::outcome::PartOutcome;
use super::said::{GeneratorOutput, form, run_bounded};
use super::servers;
use super::wrk_link::{WrkLink, both};

const OPTIONS: &str = "-t2 -c4 -d1s";

/// Scripts that end a run by themselves, and after how many replies with [`OPTIONS`]. What the
/// other connection of a thread has got by then counts, too.
const ENDS: [(&str, RangeInclusive<u64>); 1] = [("stop.lua", 200..=202)];

/// Compares what both say and what the server sees, without a script and with each of a folder.
pub(super) fn compare(weir: &Path, folder: Option<&Path>) -> Result<PartOutcome, String> {
    let link = WrkLink::to(weir)?;
    let Some(programs) = both(&link) else {
        return Ok(PartOutcome::Skipped("it is not installed".into()));
    };
    let scripts = folder.map_or_else(|| Ok(Vec::new()), scripts_in)?;
    let mut wrong = Vec::new();
    let options = scripts.iter().map(|script| format!("-s {}", script.display()));
    for more in ["", "--latency"].map(String::from).into_iter().chain(options) {
        if let Err(why) = run_both(weir, &programs, &more) {
            wrong.push(format!("{more}: {why}"));
        }
    }
    let without = if folder.is_none() { ", none without --scripts" } else { "" };
    match wrong.is_empty() {
        true => Ok(PartOutcome::Done(format!("the same text; {} scripts{without}", scripts.len()))),
        false => Err(wrong.join("\n")),
    }
}

fn scripts_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |err| format!("{}: {err}", folder.display());
    let files = fs::read_dir(folder).map_err(fail)?.flatten().map(|entry| entry.path());
    let mut scripts: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|end| end == "lua")).collect();
    scripts.sort();
    if scripts.is_empty() { Err(format!("{}: no script", folder.display())) } else { Ok(scripts) }
}

/// What is to be the same of both.
#[derive(PartialEq)]
struct ScriptObservation {
    /// What the program says.
    text: Vec<String>,
    /// What the server was asked for.
    asked: BTreeSet<String>,
}

fn run_both(weir: &Path, programs: &[(&str, PathBuf)], more: &str) -> Result<(), String> {
    let mut all = Vec::new();
    for (name, program) in programs {
        let server = servers::logging(weir)?;
        let words = format!("{OPTIONS} http://{}/ {more}", server.address);
        let said = GeneratorOutput::read(&run_bounded(program, &words)?)?;
        let ends = ENDS.iter().find(|(script, _)| more.ends_with(script));
        if let Some((_, replies)) = ends.filter(|(_, replies)| !replies.contains(&said.requests)) {
            return Err(format!("{name} had {} replies, not {replies:?}", said.requests));
        }
        if said.requests == 0 || !said.complaints.is_empty() {
            return Err(format!("{name}: {} {}", said.requests, said.complaints.join(", ")));
        }
        let asked = server.read("asked.log").lines().map(form).collect();
        all.push((name, ScriptObservation { text: said.form, asked }));
    }
    let [(first, one), (second, other)] = &all[..] else { return Err("not two".into()) };
    if one == other {
        return Ok(());
    }
    let list = |seen: &ScriptObservation| {
        let asked = seen.asked.iter().map(|line| format!("asked: {line}"));
        seen.text.iter().cloned().chain(asked).collect::<Vec<_>>().join("\n  ")
    };
    Err(format!("{first} and {second} differ:\n  {}\nand\n  {}", list(one), list(other)))
}
