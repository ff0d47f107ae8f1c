//! Lists of all servers of a group: `PUT …/upstreams/NAME/servers`.
//!
//! A list may have a version. The list of the version that the group has already is not even read,
//! so that a discovery may repeat itself whenever it is in doubt.

use session::steering::{SteeringReply, SteeringRequest};
use upstream::Group;
use upstream::api::{RosterDifference, ServersPath, SpecRefusal};
use upstream::roster::{GroupChange, ServerOperation};
use wire::json::write_text;

use super::accepted::{AcceptedWhat, UNKEPT, VersionChange};
use super::errors::not_found;
use super::rosters::Rosters;
use super::worker_change::WorkerChange;

/// The argument without which a list must not be empty.
const EMPTY_ARGUMENT: &[u8] = b"allow_empty=1";

/// Decides a list for a group that the sender may change.
pub(super) fn accept(
    request: &SteeringRequest,
    path: &ServersPath,
    group: &Group,
    rosters: &Rosters,
) -> Result<(Vec<AcceptedWhat>, SteeringReply), SpecRefusal> {
    let rules = group.rules().ok_or_else(not_found)?;
    let before = rosters.roster(group);
    let (subsystem, name) = (path.subsystem, group.name());
    let version = (!request.version.is_empty()).then(|| request.version.clone());
    let is_known = version.is_some() && rosters.version(group) == version.as_deref();
    let (after, difference) = if is_known {
        let unchanged = before.lines().len();
        (before.clone(), RosterDifference { unchanged, ..RosterDifference::default() })
    } else {
        rules.listed(&request.body, subsystem, &before)?
    };
    if !is_known && after.lines().is_empty() && !allows_empty(&request.args) {
        let text = "the list is empty; \"?allow_empty=1\" removes all servers";
        return Err(SpecRefusal::new(400, text, "UpstreamEmptyList"));
    }
    let mut whats = Vec::new();
    if after.lines() != before.lines() {
        let operation = ServerOperation::Replace(after);
        let change = GroupChange { subsystem, group: name.into(), operation };
        whats.push(AcceptedWhat::Workers(WorkerChange::Servers(change)));
    }
    let json = told(version.as_deref(), &difference);
    let is_claimed = *rosters.owner(group).unwrap_or_default() == *request.owner;
    if !is_known || !is_claimed {
        let group = name.into();
        whats.push(AcceptedWhat::Version(VersionChange { subsystem, group, version, difference }));
    }
    let fields = if rules.state.is_some() { Vec::new() } else { vec![UNKEPT.to_owned()] };
    Ok((whats, SteeringReply { status: 200, json, fields }))
}

/// The field of replies that tells the version of a group's list.
pub(super) fn version_field(version: &[u8]) -> String {
    format!("Weir-Version: {}", String::from_utf8_lossy(version))
}

fn allows_empty(args: &[u8]) -> bool {
    args.split(|byte| *byte == b'&').any(|argument| argument == EMPTY_ARGUMENT)
}

fn told(version: Option<&[u8]>, difference: &RosterDifference) -> Vec<u8> {
    let RosterDifference { added, changed, removed, unchanged } = difference;
    let mut json = b"{\"version\":".to_vec();
    write_text(version.unwrap_or_default(), &mut json);
    let counts = format!(
        ",\"added\":{added},\"changed\":{changed},\"removed\":{removed},\
         \"unchanged\":{unchanged}}}"
    );
    json.extend_from_slice(counts.as_bytes());
    json
}
