//! `xtask generator`: `weir load` before servers that count for themselves, and beside wrk.
//!
//! What is reported must be what the server saw. Nothing is measured: how fast they are is `bench`.

mod node_wrk;
mod said;
mod scripts;
mod servers;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::{packages, project};
use said::GeneratorOutput;
use servers::GeneratorServer;

pub(crate) const HELP: &str = "weir load before servers that count, and beside wrk

Usage: cargo xtask generator [--weir PATH] [--requests N] [--scripts DIR] [--strict]

  --weir PATH     the program under test; built where none is named
  --requests N    sent in each way to each server (10000)
  --scripts DIR   run wrk's scripts of this folder with both programs
  --strict        what is skipped is a failure

Servers: weir, nginx, haproxy, Go's net/http. With wrk the texts of both are compared, and read by
npm's parser of them. See conformance/generator/README.md.
";

/// Ways of sending them, and what is asked for.
const WAYS: &[(&str, &str)] = &[
    ("-c 7 -t 3", "/closing"),
    ("-c 7 -t 3 --close", "/closing"),
    ("-c 5 -t 2 --per-connection 7", "/closing"),
    ("-c 7 -t 3 --pipeline 5", "/"),
    ("-c 8 -t 2 --rate 20k", "/closing"),
    ("-c 4 -t 2 -m HEAD", "/closing"),
    ("-c 4 -t 2 -b some=thing", "/closing"),
];

/// How long a run may take, in seconds.
const RUN_MAX_S: &str = "120";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let requests = args.parsed("--requests", 10_000)?;
    let scripts = args.option("--scripts")?.map(PathBuf::from);
    let strict = args.flag("--strict");
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let weir = weir.canonicalize().map_err(|err| format!("{}: {err}", weir.display()))?;
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for (name, start) in servers::SERVERS {
        let counted = match start(&weir) {
            Ok(Some(server)) => count(&weir, &server, requests),
            Ok(None) => Ok(PartOutcome::Skipped("it is not installed".into())),
            Err(why) => Err(why),
        };
        note(name, counted, &mut failed, &mut skipped);
    }
    let beside = || scripts::compare(&weir, scripts.as_deref());
    note("wrk", beside(), &mut failed, &mut skipped);
    note("node-wrk", node_wrk::read(&weir), &mut failed, &mut skipped);
    if strict {
        failed.extend(skipped);
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// What came of a part that did not fail.
enum PartOutcome {
    Done(String),
    Skipped(String),
}

fn note(
    name: &str,
    outcome: Result<PartOutcome, String>,
    failed: &mut Vec<String>,
    skipped: &mut Vec<String>,
) {
    match outcome {
        Ok(PartOutcome::Done(what)) => println!("{name:9} ok: {what}"),
        Ok(PartOutcome::Skipped(why)) => {
            println!("{name:9} skipped: {why}");
            skipped.push(format!("{name}: skipped: {why}"));
        }
        Err(why) => failed.push(format!("{name}: {why}")),
    }
}

/// Sends so many in every way. Both sides must say that number.
fn count(weir: &Path, server: &GeneratorServer, requests: u64) -> Result<PartOutcome, String> {
    let mut before = server.count()?;
    for (options, path) in WAYS {
        let url = format!("http://{}{path}", server.address);
        let words = format!("load -q -n {requests} {options} {url}");
        let said = GeneratorOutput::read(&run_bounded(weir, &words)?)?;
        let now = server.await_count(before + requests)?;
        if said.requests != requests || !said.complaints.is_empty() || now - before != requests {
            let GeneratorOutput { requests: reported, complaints, .. } = said;
            return Err(format!(
                "{options}: {requests} asked for, {reported} reported, \
                 {} counted by the server; {}",
                now - before,
                complaints.join("; ")
            ));
        }
        before = now;
    }
    Ok(PartOutcome::Done(format!("{requests} requests in each of {} ways", WAYS.len())))
}

/// What a run says; anything but success is an error.
fn run_bounded(program: &Path, words: &str) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.arg(RUN_MAX_S).arg(program).args(words.split_whitespace());
    project::output(&mut command).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// A folder with a link to the program that is called `wrk`; it goes with the value.
struct WrkLink(PathBuf);

impl WrkLink {
    fn to(weir: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("weir-generator-{}", std::process::id()));
        let fail = |err: std::io::Error| format!("{}: {err}", folder.display());
        std::fs::create_dir_all(&folder).map_err(fail)?;
        let link = Self(folder.clone());
        std::os::unix::fs::symlink(weir, link.wrk()).map_err(fail)?;
        Ok(link)
    }

    fn wrk(&self) -> PathBuf {
        self.0.join("wrk")
    }
}

impl Drop for WrkLink {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Both programs: the real one, if it is installed, and ours.
fn both(link: &WrkLink) -> Option<[(&'static str, PathBuf); 2]> {
    Some([("wrk", packages::find("wrk")?), ("weir", link.wrk())])
}
