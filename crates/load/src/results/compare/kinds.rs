//! Runs that cannot be compared: with different load, ended early, or in doubt.

use super::super::{Doubt, LoadKind, Results, amounts, doubts};

/// A property of a run, as text.
type RunProperty = fn(&Results) -> String;

/// The properties that define a kind of load.
const KINDS: [(&str, RunProperty); 5] = [
    ("pace", |run| match run.pace {
        LoadKind::Closed => "closed loop".to_owned(),
        LoadKind::Open { from, to } if from == to => format!("open loop, {from} requests/s"),
        LoadKind::Open { from, to } => format!("open loop, {from:.0} to {to:.0} requests/s"),
    }),
    ("connections", |run| run.connections.to_string()),
    ("threads", |run| run.threads.to_string()),
    ("duration", |run| match run.duration {
        Some(time) => amounts::time_us(time.as_secs_f64() * 1e6),
        None => "until its requests were done".to_owned(),
    }),
    ("requested", |run| run.urls.iter().map(|url| path(url)).collect::<Vec<_>>().join(" ")),
];

/// A URL without the server, because servers are compared.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?']).map_or("/", |at| &rest[at..])
}

/// Describes how the loads differ; empty if they do not.
pub(super) fn differences(a: &[Results], b: &[Results]) -> String {
    let mut text = String::new();
    for (name, of) in KINDS {
        let (a, b) = (all(a, of), all(b, of));
        if a != b || a.len() > 1 {
            text +=
                &format!("  {name:<12}  A: {}\n  {:12}  B: {}\n", a.join("; "), "", b.join("; "));
        }
    }
    if text.is_empty() { text } else { format!("The loads differ:\n{text}\n") }
}

/// The distinct values of runs.
fn all(runs: &[Results], of: RunProperty) -> Vec<String> {
    let mut all: Vec<String> = runs.iter().map(of).collect();
    all.sort();
    all.dedup();
    all
}

/// Describes which runs are not to be trusted, and why.
pub(super) fn warnings(side: &str, runs: &[Results]) -> String {
    let mut text = String::new();
    for (n, run) in (1..).zip(runs) {
        if run.interrupted {
            text += &format!("Run {n} of {side} was interrupted.\n");
        }
        text += &doubts_of(&format!("The figures of run {n} of {side}"), run);
    }
    text
}

/// Describes why some figures are not to be trusted; empty if there is no reason.
pub(super) fn doubts_of(figures: &str, run: &Results) -> String {
    let doubt = |Doubt { what, remedy }: Doubt| {
        format!("{figures} are the generator's, not the server's:\n  {what}:\n  {remedy}.\n")
    };
    doubts(run).into_iter().map(doubt).collect()
}
