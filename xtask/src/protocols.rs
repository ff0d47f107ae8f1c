//! `xtask protocols`: real servers and clients of other protocols than HTTP, through `stream {}`.
//!
//! Each protocol is a file here and a line in [`PROTOCOLS`]. What it needs is installed from
//! Debian's packages.

mod command;
mod dns;
mod postgresql;
mod redis;
mod server;
mod websocket;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::args::Args;
use crate::project;

pub(crate) const HELP: &str = "PostgreSQL, Redis, DNS and WebSocket through stream

Usage: cargo xtask protocols [--weir PATH] [--only NAME]

  --weir PATH   the program under test; built where none is named
  --only NAME   this protocol alone

Each runs a real server behind Weir and real clients before it. What is missing is installed from
Debian's packages, which takes root.
";

struct ProvedProtocol {
    name: &'static str,
    /// What was done, in a few words.
    run: fn(&Path) -> Result<String, String>,
}

const PROTOCOLS: &[ProvedProtocol] = &[
    ProvedProtocol { name: "postgresql", run: postgresql::run },
    ProvedProtocol { name: "redis", run: redis::run },
    ProvedProtocol { name: "dns", run: dns::run },
    ProvedProtocol { name: "websocket", run: websocket::run },
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let only = args.option("--only")?;
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let weir = weir.canonicalize().map_err(|err| format!("{}: {err}", weir.display()))?;
    let is_wanted = |one: &&ProvedProtocol| only.as_deref().is_none_or(|name| name == one.name);
    let mut failed = Vec::new();
    for ProvedProtocol { name, run } in PROTOCOLS.iter().filter(is_wanted) {
        let begun = Instant::now();
        match run(&weir) {
            Ok(done) => println!("{name:11} ok ({:.1} s): {done}", begun.elapsed().as_secs_f64()),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}
