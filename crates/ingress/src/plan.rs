//! The plan for a cluster: files, lists of servers and statuses, as a pure function of its objects.

mod dry_run;
mod endpoints;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod gateway;
mod ingress;
mod left_out;
mod names;
mod nginx_conf;
mod object;
mod outcome;
mod patterns;
mod planner;
mod route_files;
mod status;

pub use dry_run::dry_run;
pub(crate) use endpoints::{servers, service_of};
pub(crate) use left_out::{leave_out, owner, unbound};
pub(crate) use names::is_network;
pub(crate) use nginx_conf::{GATEWAY_ADDRESSES_MAX, ServiceGroupName};
pub(crate) use outcome::PlannedListen;
pub use outcome::{Plan, PlanFaults, PlannedFiles, Settings, StatusUpdate};

use crate::Objects;
use planner::Planner;

/// The file with what was left out and why, a line each. It exists only if something was.
pub const WARNINGS_FILE: &str = "warnings.txt";

pub fn plan(objects: &Objects, settings: &Settings) -> Plan {
    let mut planner = Planner::new(objects, settings);
    gateway::plan(&mut planner);
    ingress::plan(&mut planner);
    for ((kind, key), why) in &settings.faults.refused {
        let what = format!("{kind:?} {}/{}", key.namespace, key.name);
        planner.warn(format!("{what} is left out, since the server refuses it: {why}"));
    }
    let Planner { sites, mut files, statuses, listens, warnings, .. } = planner;
    nginx_conf::write_files(&sites, settings, &mut files);
    leave_out(&mut files, |object| settings.faults.refused.contains_key(object));
    if !warnings.is_empty() {
        let mut text = warnings.into_iter().collect::<Vec<_>>().join("\n");
        text.push('\n');
        files.insert(WARNINGS_FILE.to_owned(), text.into_bytes());
    }
    let (groups, services) = (sites.groups.servers(), sites.groups.names());
    Plan { files, groups, services, statuses, listens }
}

#[cfg(test)]
mod tests;
