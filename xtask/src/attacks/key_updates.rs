//! Clients of TLS 1.3 that change their keys as often as they are let.
//!
//! They seal their own records, so they are a program of crate `net`'s tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::bystander::Bystander;
use super::server;
use crate::own_certificate::OwnCertificate;
use crate::project;

const CLIENTS: usize = 4;
/// How long one goes on if it is let.
const SECONDS: &str = "2";
/// The longest that other clients may wait half of the time, and at all, on a machine that does
/// other things besides.
const WAIT_MAX: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(250)];

/// What a client does, and what it says of the end.
const WAYS: [(&str, &str); 2] = [
    // RFC 8446, 5.1: a message that changes keys ends its record.
    ("together", "alert 10"),
    ("apart", "served"),
];

/// Runs those whose name contains `only`; `complain` is told what does not end as it should.
pub(super) fn run(
    program: &Path,
    only: &str,
    mut complain: impl FnMut(String),
) -> Result<(), String> {
    if !"key updates".contains(only) {
        return Ok(());
    }
    let client = build()?;
    println!("key updates                end           others p50/p99/max");
    for (way, end) in WAYS {
        if let Err(why) = run_one(program, &client, way, end) {
            complain(format!("key updates {way}: {why}"));
        }
    }
    Ok(())
}

fn build() -> Result<PathBuf, String> {
    let words = ["build", "--package", "net", "--features", "testing", "--example", "key_updates"];
    project::succeed(&mut project::cargo(&words))?;
    Ok(project::debug_folder().join("examples/key_updates"))
}

fn run_one(program: &Path, client: &Path, way: &str, end: &str) -> Result<(), String> {
    let keys = OwnCertificate::new()?;
    let server = server::start(program, &keys, true)?;
    let bystander = Bystander::start(&server.file("other.sock"))?;
    let address = server.address.to_string();
    let start = || {
        let mut command = Command::new(client);
        command.args([&address, way, SECONDS]).stdout(Stdio::piped());
        command.spawn().map_err(|err| err.to_string())
    };
    let clients = (0..CLIENTS).map(|_| start()).collect::<Result<Vec<_>, _>>()?;
    let mut ends = Vec::new();
    for client in clients {
        let output = client.wait_with_output().map_err(|err| err.to_string())?;
        ends.push(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let latency = bystander.stop()?;
    println!("{way:26} {:10} {latency}", ends[0]);
    if let Some(other) = ends.iter().find(|said| *said != end) {
        return Err(format!("a client ended with {other:?}"));
    }
    let [median_max, max] = WAIT_MAX;
    // The other way is over before half of the time says anything.
    latency.judge(if way == "apart" { median_max } else { max }, max)
}
