//! `weir ingress`: a controller that makes a server of a Kubernetes cluster's gateway: it turns
//! Gateway API and Ingress objects into nginx.conf, certificates and lists of servers.
//!
//! ```text
//! API server --objects--> plan (pure) --+-- files that changed: written, then a reload
//!                                       |      `-- what it says of objects: the leader writes it
//!                                       +-- servers that changed: one PUT per group
//! ```
//!
//! Everything blocks, with deadlines, on threads: one watches each kind of object, one plans, one
//! installs configurations, one sends lists (that of `weir discover`), one writes statuses, one
//! takes part in the election. Of a value that waits between two of them only the newest counts.

mod arguments;
mod blame;
mod clock;
mod cluster;
mod collections;
mod controller;
mod election;
mod folder;
mod installer;
mod latest;
mod metrics;
mod objects;
mod plan;
mod refusals;
mod run;
mod server;
mod settle;
mod statuses;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use arguments::{HELP, IngressArguments};
pub use objects::{Objects, ResourceKey, ResourceKind, ResourceRef};
pub use plan::{
    Plan, PlanFaults, PlannedFiles, Settings, StatusUpdate, WARNINGS_FILE, dry_run, plan,
};

#[cfg(any(test, feature = "fuzzing"))]
pub use plan::fuzz;

/// Runs the program with the arguments after its name.
pub fn run(arguments: &[String]) -> ExitCode {
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "plan") {
        return dry_run(rest);
    }
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        let written = std::io::stdout().write_all(HELP.as_bytes());
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let ended = IngressArguments::parse(arguments).and_then(|arguments| run::run(&arguments));
    ended.unwrap_or_else(|why| {
        tell(&why);
        ExitCode::FAILURE
    })
}

/// Writes a line of the log.
fn tell(line: &str) {
    // There is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "weir-ingress: {line}");
}
