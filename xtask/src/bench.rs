//! The yardstick: what requests cost in Weir, compared with nginx.
//!
//! It is the study `cost` of `weir lab run`, which has the rows and their limits
//! (crates/lab/studies/cost.toml), and `generators`, which compares `weir load` with others.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::prove::ProofFolder;
use crate::{packages, project};

pub(crate) const HELP: &str = "CPU per request, compared with nginx: the study cost of weir lab

Usage: cargo xtask bench [ROW]... [--blocks N] [--weir PATH] [--nginx PATH] [--out DIR]

  ROW           a row of crates/lab/studies/cost.toml; none: all, and the study generators
  --blocks N    turns of each server (24); 6 at least
  --weir PATH   this program instead of a fresh release build
  --nginx PATH  this one instead of Debian's
  --out DIR     keep the report there

Fails when a row is surely beyond its limit, or a measurement fails.
";

const PROGRAMS: &[(&str, &str)] = &[
    ("nginx", "nginx"),
    ("openssl", "openssl"),
    ("taskset", "util-linux"),
    ("setpriv", "util-linux"),
];

/// The generators that `weir load` is compared with.
const GENERATORS: &[(&str, &str)] =
    &[("wrk", "wrk"), ("h2load", "nghttp2-client"), ("ab", "apache2-utils")];

/// The exit codes of `weir lab run` without a limit that is surely broken.
const UNBROKEN: [i32; 2] = [0, 4];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let blocks = args.option("--blocks")?;
    let weir = args.option("--weir")?.map(PathBuf::from);
    let nginx = args.option("--nginx")?;
    let out = args.option("--out")?.map(PathBuf::from);
    let rows = args.words()?;
    packages::need(PROGRAMS)?;
    let weir = weir.map_or_else(|| project::release("weir"), Ok)?;
    let folder = ProofFolder::new("bench")?;
    let out = out.unwrap_or_else(|| folder.join("results"));
    let blocks: Vec<String> =
        blocks.map_or_else(Vec::new, |blocks| vec!["--blocks".to_owned(), blocks]);
    let chosen = rows.iter().flat_map(|row| ["--row".to_owned(), row.clone()]);
    let nginx = ["--against".to_owned(), nginx.unwrap_or_else(|| "nginx".to_owned())];
    let options: Vec<String> = blocks.iter().cloned().chain(chosen).chain(nginx).collect();
    let cost = study(&weir, "cost", &options, &out);
    if !rows.is_empty() {
        return cost;
    }
    packages::need(GENERATORS)?;
    cost.and(study(&weir, "generators", &blocks, &out))
}

/// Has Weir serve each row of the study, for a profile of what it does.
pub(crate) fn exercise(weir: &Path, turn_ms: u64) -> Result<(), String> {
    packages::need(PROGRAMS)?;
    let folder = ProofFolder::new("exercise")?;
    let blocks = ["--blocks".to_owned(), turn_ms.div_ceil(TURN_MS).max(BLOCKS_MIN).to_string()];
    study(weir, "cost", &blocks, &folder.0)
}

/// The length of the study's turns, and its fewest blocks.
const TURN_MS: u64 = 200;
const BLOCKS_MIN: u64 = 6;

fn study(weir: &Path, name: &str, options: &[String], out: &Path) -> Result<(), String> {
    let mut lab = Command::new(weir);
    lab.args(["lab", "run", name, "--loopback"]).args(options).arg("--out").arg(out.join(name));
    let status = lab.status().map_err(|err| format!("{}: {err}", weir.display()))?;
    match status.code() {
        Some(code) if UNBROKEN.contains(&code) => Ok(()),
        _ => Err(format!("bench: {name} ended with {status}")),
    }
}
