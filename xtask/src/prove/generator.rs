//! `weir load` before servers that count for themselves, and beside wrk.
//!
//! What is reported must be what the server saw. Nothing is measured: how fast they are is `bench`.

mod node_wrk;
mod outcome;
mod said;
mod scripts;
mod servers;
mod wrk_link;

use std::path::{Path, PathBuf};

use super::ProofVerdict;
use crate::args::Args;
use outcome::PartOutcome;
use said::{GeneratorOutput, run_bounded};
use servers::GeneratorServer;

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

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let requests = args.parsed("--requests", 10_000)?;
    let scripts = args.option("--scripts")?.map(PathBuf::from);
    let strict = args.flag("--strict");
    args.end()?;
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for (name, start) in servers::SERVERS {
        let counted = match start(weir) {
            Ok(Some(server)) => count(weir, &server, requests),
            Ok(None) => Ok(PartOutcome::Skipped("it is not installed".into())),
            Err(why) => Err(why),
        };
        note(name, counted, &mut failed, &mut skipped);
    }
    let beside = || scripts::compare(weir, scripts.as_deref());
    note("wrk", beside(), &mut failed, &mut skipped);
    note("node-wrk", node_wrk::read(weir), &mut failed, &mut skipped);
    if strict {
        failed.extend(skipped);
    }
    if failed.is_empty() { Ok(ProofVerdict::Right) } else { Err(failed.join("\n")) }
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
