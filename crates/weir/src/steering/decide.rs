//! What becomes of a call.

use conf::Subsystem;
use session::steering::{CHANGE_BODY_MAX, SteeringCall, SteeringReply, SteeringRequest};
use upstream::Group;
use upstream::api::{ServersAnswer, ServersPath, SpecRefusal};
use upstream::roster::GroupChange;

use super::accepted::{AcceptedChange, AcceptedWhat, OwnerChange, UNKEPT};
use super::errors::not_found;
use super::keyvals::{KeyvalPath, TrialTables};
use super::lists;
use super::purges;
use super::resets::ResetPath;
use super::rosters::Rosters;
use super::worker_change::WorkerChange;
use crate::log::notice;
use crate::subsystems::Sites;
use session::steering::refusal;

/// The longest name of an owner.
const OWNER_LENGTH_MAX: usize = 100;
/// The longest version of a list of servers.
const VERSION_LENGTH_MAX: usize = 200;

/// Answers a request that changes nothing.
pub(super) fn answer_reading(
    request: &SteeringRequest,
    sites: &Sites,
    rosters: &Rosters,
) -> Result<SteeringReply, SpecRefusal> {
    let path = ServersPath::parse(&request.path).ok_or_else(not_found)?;
    let group = group(sites, path.subsystem, &path.group)?;
    let answer = answer(request, &path, group, rosters)?;
    let version = rosters.version(group).filter(|_| path.server.is_none());
    let fields = version.map(lists::version_field).into_iter().collect();
    Ok(SteeringReply { status: answer.status, json: answer.json, fields })
}

/// Begins counters anew, and answers.
pub(super) fn reset(call: SteeringCall, path: &ResetPath, sites: &Sites) {
    let SteeringCall { request, reply } = call;
    match check_request(&request).and_then(|()| path.reset(sites)) {
        Ok(()) => {
            let who = String::from_utf8_lossy(&request.who);
            notice!("the counters of {} begin anew, by {who}", path.told());
            reply.send(SteeringReply { status: 204, ..SteeringReply::default() });
        }
        Err(refused) => reply.send(refusal(&refused, &request)),
    }
}

/// What there will be after the changes that were decided.
pub(super) struct TrialState {
    pub(super) rosters: Rosters,
    pub(super) tables: TrialTables,
}

/// Decides a call; one that is refused is answered.
pub(super) fn decide(
    call: SteeringCall,
    sites: &Sites,
    trial: &mut TrialState,
) -> Option<AcceptedChange> {
    let SteeringCall { request, reply: to } = call;
    match accept(&request, sites, trial) {
        Ok((mut whats, reply)) => {
            whats.extend(claim(&request, &whats, sites, &trial.rosters));
            whats.iter().for_each(|what| trial.rosters.apply(what, sites));
            Some(AcceptedChange { whats, request, reply, to })
        }
        Err(refused) => {
            to.send(refusal(&refused, &request));
            None
        }
    }
}

fn accept(
    request: &SteeringRequest,
    sites: &Sites,
    trial: &mut TrialState,
) -> Result<(Vec<AcceptedWhat>, SteeringReply), SpecRefusal> {
    if !request.store.is_empty() {
        let change = trial.tables.merge(request, sites)?;
        let whats = change.map(|change| AcceptedWhat::Workers(WorkerChange::Keyval(change)));
        let reply = SteeringReply { status: 204, ..SteeringReply::default() };
        return Ok((whats.into_iter().collect(), reply));
    }
    check_request(request)?;
    if let Some(path) = KeyvalPath::parse(&request.path) {
        let (change, reply) = trial.tables.accept(request, path, sites)?;
        return Ok((vec![AcceptedWhat::Workers(WorkerChange::Keyval(change))], reply));
    }
    if let Some(cache) = purges::cache_of(&request.path) {
        let (change, reply) = purges::accept(request, &cache, sites)?;
        return Ok((vec![AcceptedWhat::Workers(WorkerChange::Purge(change))], reply));
    }
    if let Some(released) = released(request, sites)? {
        let reply = SteeringReply { status: 204, ..SteeringReply::default() };
        return Ok((vec![AcceptedWhat::Owner(released)], reply));
    }
    let path = ServersPath::parse(&request.path).ok_or_else(not_found)?;
    let group = group(sites, path.subsystem, &path.group)?;
    let rosters = &trial.rosters;
    if let Some(owner) = rosters.owner(group).filter(|owner| **owner != *request.owner) {
        let owner = String::from_utf8_lossy(owner);
        let text = format!("the servers of the upstream belong to \"{owner}\"");
        return Err(SpecRefusal::new(409, text, "UpstreamOwned"));
    }
    if &*request.method == b"PUT" && path.server.is_none() {
        return lists::accept(request, &path, group, rosters);
    }
    let ServersAnswer { status, json, operation } = answer(request, &path, group, rosters)?;
    let operation = operation.ok_or_else(not_found)?;
    let is_kept = group.rules().is_some_and(|rules| rules.state.is_some());
    let fields = if is_kept { Vec::new() } else { vec![UNKEPT.to_owned()] };
    let change = GroupChange { subsystem: path.subsystem, group: group.name().into(), operation };
    let what = AcceptedWhat::Workers(WorkerChange::Servers(change));
    Ok((vec![what], SteeringReply { status, json, fields }))
}

/// Checks what does not depend on the group.
fn check_request(request: &SteeringRequest) -> Result<(), SpecRefusal> {
    let refused = |status, text: &str, code| Err(SpecRefusal::new(status, text, code));
    if !matches!(&*request.method, b"POST" | b"PUT" | b"PATCH" | b"DELETE") {
        return refused(405, "method disabled", "MethodDisabled");
    }
    if !request.origin.is_empty() && !is_own_origin(&request.origin, &request.host) {
        return refused(403, "the request comes from another site", "ForeignOrigin");
    }
    if request.body.len() > CHANGE_BODY_MAX {
        return refused(413, "the body is too large", "BodyTooLarge");
    }
    if &*request.method != b"DELETE" && !is_json(&request.content_type) {
        return refused(415, "the content type must be application/json", "JsonError");
    }
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
    if request.owner.len() > OWNER_LENGTH_MAX || !request.owner.iter().all(is_printable) {
        return refused(400, "invalid owner", "BadOwner");
    }
    if request.version.len() > VERSION_LENGTH_MAX || !request.version.iter().all(is_printable) {
        return refused(400, "invalid version", "BadVersion");
    }
    Ok(())
}

/// Whether a browser's page came from this server.
fn is_own_origin(origin: &[u8], host: &[u8]) -> bool {
    let schemes: [&[u8]; 2] = [b"http://", b"https://"];
    let rest = schemes.iter().find_map(|scheme| origin.strip_prefix(*scheme));
    !host.is_empty() && rest.is_some_and(|own| own.eq_ignore_ascii_case(host))
}

fn is_json(content_type: &[u8]) -> bool {
    let kind = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// `DELETE …/upstreams/NAME/owner`: anybody who may write can take a group from its owner.
fn released(request: &SteeringRequest, sites: &Sites) -> Result<Option<OwnerChange>, SpecRefusal> {
    let Some(start) = request.path.strip_suffix(b"/owner") else { return Ok(None) };
    let path = ServersPath::parse(&[start, b"/servers"].concat()).ok_or_else(not_found)?;
    if &*request.method != b"DELETE" {
        return Err(SpecRefusal::new(405, "method disabled", "MethodDisabled"));
    }
    let group = group(sites, path.subsystem, &path.group)?;
    let (subsystem, group) = (path.subsystem, group.name().into());
    Ok(Some(OwnerChange { subsystem, group, owner: None }))
}

/// The claim that comes with the first change of an owner.
fn claim(
    request: &SteeringRequest,
    whats: &[AcceptedWhat],
    sites: &Sites,
    rosters: &Rosters,
) -> Option<AcceptedWhat> {
    let (subsystem, group) = whats.iter().find_map(|what| match what {
        AcceptedWhat::Workers(WorkerChange::Servers(change)) => {
            Some((&change.subsystem, &change.group))
        }
        AcceptedWhat::Version(change) => Some((&change.subsystem, &change.group)),
        AcceptedWhat::Workers(_) | AcceptedWhat::Owner(_) => None,
    })?;
    let is_new = rosters.owner(sites.group(*subsystem, group)?).is_none();
    (is_new && !request.owner.is_empty()).then(|| {
        let (subsystem, group) = (*subsystem, group.clone());
        AcceptedWhat::Owner(OwnerChange { subsystem, group, owner: Some(request.owner.clone()) })
    })
}

fn answer(
    request: &SteeringRequest,
    path: &ServersPath,
    group: &Group,
    rosters: &Rosters,
) -> Result<ServersAnswer, SpecRefusal> {
    let rules = group.rules().ok_or_else(not_found)?;
    rules.answer(&request.method, path, &request.body, &rosters.roster(group))
}

fn group<'s>(
    sites: &'s Sites,
    subsystem: Subsystem,
    name: &[u8],
) -> Result<&'s Group, SpecRefusal> {
    let group = sites.group(subsystem, name).map(|group| &**group);
    group.ok_or_else(|| SpecRefusal::new(404, "upstream not found", "UpstreamNotFound"))
}
