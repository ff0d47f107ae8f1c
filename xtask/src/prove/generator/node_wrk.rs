//! A parser of wrk's text that people use, on the texts of both programs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::outcome::PartOutcome;
use super::said::{GeneratorOutput, run_bounded};
use super::servers;
use super::wrk_link::{WrkLink, both};
use crate::backends::program;
use crate::{packages, project};

/// What it finds, by name.
type NodeWrkFigures = BTreeMap<String, String>;

/// Whether it finds the same things in both, and the number that is there.
pub(super) fn read(weir: &Path) -> Result<PartOutcome, String> {
    let link = WrkLink::to(weir)?;
    let Some(programs) = both(&link) else {
        return Ok(PartOutcome::Skipped("wrk is not installed".into()));
    };
    if packages::find("node").is_none() || packages::find("npm").is_none() {
        return Ok(PartOutcome::Skipped("node or npm is not installed".into()));
    }
    let source = project::root().join("conformance/generator/node-wrk");
    let install = ["npm install --silent --no-audit --no-fund"];
    let folder = match program::prepare(&source, "node-wrk", &install) {
        Ok(folder) => folder,
        Err(why) => return Ok(PartOutcome::Skipped(why)),
    };
    let server = servers::logging(weir)?;
    let mut names = Vec::new();
    for latency in ["", "--latency"] {
        for (name, program) in &programs {
            let words = format!("-t2 -c4 -d1s http://{}/ {latency}", server.address);
            let text = run_bounded(program, &words)?;
            let found = parse(&folder, &text)?;
            check(&found, &text).map_err(|why| format!("{name} {latency}: {why}\n{text}"))?;
            names.push(found.into_keys().collect::<Vec<_>>());
        }
    }
    for pair in names.chunks(2) {
        if pair[0] != pair[1] {
            return Err(format!("it finds {:?} with wrk, {:?} with weir", pair[0], pair[1]));
        }
    }
    Ok(PartOutcome::Done(format!("it finds the same {} things", names[names.len() - 1].len())))
}

/// Whatever it finds is something, and the number of requests is that of the text.
fn check(found: &NodeWrkFigures, text: &str) -> Result<(), String> {
    if let Some((name, value)) =
        found.iter().find(|(_, value)| matches!(value.as_str(), "" | "NaN" | "undefined"))
    {
        return Err(format!("{name} is \"{value}\""));
    }
    let expected = GeneratorOutput::read(text)?.requests.to_string();
    match found.get("requestsTotal") {
        Some(total) if *total == expected => Ok(()),
        total => Err(format!("it finds {total:?} requests, not {expected}")),
    }
}

fn parse(folder: &Path, text: &str) -> Result<NodeWrkFigures, String> {
    let fail = |err: std::io::Error| format!("node: {err}");
    let mut command = Command::new("node");
    let command = command.arg("read.js").current_dir(folder).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(fail)?;
    // The pipe is closed once it is written.
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).map_err(fail)?;
    let output = child.wait_with_output().map_err(fail)?;
    if !output.status.success() {
        return Err(format!("the parser fails on\n{text}"));
    }
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs = found.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
