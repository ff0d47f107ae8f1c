//! `xtask several-machines`: the configurations of docs/several-machines.md, with real keepalived,
//! bird, HAProxy and OpenSSL, on machines that are network namespaces.
//!
//! The script beside the configurations does it, since it is commands of the shell throughout.

use std::path::PathBuf;
use std::process::Command;

use crate::args::Args;
use crate::{packages, project};

pub(crate) const HELP: &str = "keepalived, BGP, HAProxy and shared TLS sessions in namespaces

Usage: cargo xtask several-machines [--weir PATH] [--only CASE]

  --weir PATH   the program under test; built where none is named
  --only CASE   keepalived, bgp, haproxy, tickets or sticky

Needs root and the programs: Debian's packages iproute2, curl, openssl, keepalived, bird2, haproxy.
Prints how many requests failed.
";

const PROGRAMS: [&str; 6] = ["ip", "curl", "openssl", "keepalived", "bird", "haproxy"];

/// What is missing to run it.
pub(crate) fn lacks() -> Option<String> {
    let missing = PROGRAMS.into_iter().find(|program| packages::find(program).is_none());
    let missing = missing.map(|program| format!("{program} is not installed"));
    missing.or_else(|| (!packages::is_root()).then(|| "it needs root".to_owned()))
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let only = args.option("--only")?;
    args.end()?;
    if let Some(missing) = lacks() {
        return Err(missing);
    }
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let script = project::root().join("examples/several-machines/try");
    project::succeed(Command::new(script).arg(weir).args(only))
}
