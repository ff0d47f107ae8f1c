//! The plan for a cluster: files, lists of servers and statuses, as a pure function of its objects.

mod dry_run;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod gateway;
mod ingress;
mod names;
mod nginx_conf;
mod object;
mod outcome;
mod patterns;
mod planner;
mod route_files;
mod status;

pub use dry_run::dry_run;
pub(crate) use names::is_network;
pub(crate) use nginx_conf::GATEWAY_ADDRESSES_MAX;
pub use outcome::{Plan, PlannedFiles, Settings, StatusUpdate};

use crate::Objects;
use planner::Planner;

/// The file with what was left out and why, a line each. It exists only if something was.
pub const WARNINGS_FILE: &str = "warnings.txt";

pub fn plan(objects: &Objects, settings: &Settings) -> Plan {
    let mut planner = Planner::new(objects, settings);
    gateway::plan(&mut planner);
    ingress::plan(&mut planner);
    let Planner { sites, mut files, statuses, warnings, .. } = planner;
    nginx_conf::write_files(&sites, settings, &mut files);
    if !warnings.is_empty() {
        let mut text = warnings.into_iter().collect::<Vec<_>>().join("\n");
        text.push('\n');
        files.insert(WARNINGS_FILE.to_owned(), text.into_bytes());
    }
    Plan { files, groups: sites.groups.servers(), statuses }
}

#[cfg(test)]
mod tests;
