//! `xtask protocols`: real servers and clients of other protocols than HTTP, through `stream {}`.
//!
//! Each protocol is a file here and a line in [`PROTOCOLS`]. What it needs is installed from
//! Debian's packages.

mod dns;
mod postgresql;
mod redis;
mod websocket;

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

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

/// How long a server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// The server of a protocol; it runs until this is dropped.
struct ProtocolServer(Child);

impl ProtocolServer {
    /// Starts a program and waits until it accepts connections.
    fn start(command: &mut Command, port: u16) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self(command.spawn().map_err(|err| format!("{name}: {err}"))?);
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > end || !matches!(server.0.try_wait(), Ok(None)) {
                return Err(format!("{name} does not start"));
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }
}

impl Drop for ProtocolServer {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "INT", &self.0.id().to_string()]).status();
        let end = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command that is ended if it takes too long.
fn bounded(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", program]).stdin(Stdio::null());
    command
}

fn printed(command: &mut Command) -> Result<String, String> {
    project::output(command).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
