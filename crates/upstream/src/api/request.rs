//! Requests to the API about the servers of a group, in the form of NGINX Plus's API.
//!
//! ```text
//! GET|POST          http/upstreams/NAME/servers
//! GET|PATCH|DELETE  http/upstreams/NAME/servers/ID
//! ```
//!
//! Deliberately absent: reading requests from a connection, and what it takes to make a change
//! known to the processes that serve.

use conf::Subsystem;

use super::patch::SpecPatch;
use super::rules::{GroupRules, SpecRefusal};
use crate::roster::{Roster, RosterLine, ServerOperation, line_of_server};

/// What a path names: `http/upstreams/NAME/servers/ID`, without the version before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServersPath {
    pub subsystem: Subsystem,
    pub group: Box<[u8]>,
    /// The text of the id.
    pub server: Option<Box<[u8]>>,
}

impl ServersPath {
    /// `None`: the path names something else.
    pub fn parse(path: &[u8]) -> Option<Self> {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let mut parts = path.split(|byte| *byte == b'/');
        let subsystem = match parts.next()? {
            b"http" => Subsystem::Http,
            b"stream" => Subsystem::Stream,
            _ => return None,
        };
        parts.next().filter(|part| *part == b"upstreams")?;
        let group = parts.next().filter(|name| !name.is_empty())?;
        parts.next().filter(|part| *part == b"servers")?;
        let server = parts.next().filter(|id| !id.is_empty()).map(Box::from);
        let rest = parts.next();
        (rest.is_none() || server.is_some() && rest == Some(b"")).then_some(())?;
        parts.next().is_none().then(|| Self { subsystem, group: percent_decoded(group), server })
    }
}

/// The text without its percent escapes.
pub fn percent_decoded(text: &[u8]) -> Box<[u8]> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        rest = match (byte, digit(0).zip(digit(1))) {
            (b'%', Some((high, low))) => {
                out.push((high << 4 | low) as u8);
                &after[2..]
            }
            _ => {
                out.push(*byte);
                after
            }
        };
    }
    out.into()
}

/// The answer to a request that succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServersAnswer {
    pub status: u16,
    pub json: Vec<u8>,
    /// The change that is to be made before it is given.
    pub operation: Option<ServerOperation>,
}

impl GroupRules {
    /// Answers a request about the servers of a group.
    pub fn answer(
        &self,
        method: &[u8],
        path: &ServersPath,
        body: &[u8],
        roster: &Roster,
    ) -> Result<ServersAnswer, SpecRefusal> {
        let subsystem = path.subsystem;
        let line = path.server.as_deref().map(|id| find(roster, id)).transpose()?;
        match (method, line) {
            (b"GET" | b"HEAD", None) => Ok(ok(roster.to_json(subsystem))),
            (b"GET" | b"HEAD", Some(line)) => Ok(ok(line.to_json(subsystem))),
            (b"POST", None) => {
                let operation = self.add(roster, &SpecPatch::from_json(body, subsystem)?)?;
                Ok(ServersAnswer { status: 201, ..changed(roster, operation, subsystem) })
            }
            (b"PATCH", Some(line)) => {
                let operation = self.set(line, &SpecPatch::from_json(body, subsystem)?)?;
                Ok(changed(roster, operation, subsystem))
            }
            (b"DELETE", Some(line)) => {
                if path.server.as_deref().and_then(number) != Some(line.id) {
                    let text = format!("server \"{}\" not removable", line.id);
                    return Err(SpecRefusal::new(400, text, "UpstreamServerImmutable"));
                }
                Ok(changed(roster, ServerOperation::Remove { id: line.id }, subsystem))
            }
            _ => Err(SpecRefusal::new(405, "method disabled", "MethodDisabled")),
        }
    }
}

fn ok(json: Vec<u8>) -> ServersAnswer {
    ServersAnswer { status: 200, json, operation: None }
}

/// The answer to a change: the server as it is then, or all that are left.
fn changed(roster: &Roster, operation: ServerOperation, subsystem: Subsystem) -> ServersAnswer {
    let mut after = roster.clone();
    after.apply(&operation);
    let json = match &operation {
        ServerOperation::Add { id, .. } | ServerOperation::Set { id, .. } => {
            after.find(*id).map(|line| line.to_json(subsystem)).unwrap_or_default()
        }
        ServerOperation::Remove { .. } | ServerOperation::Replace(_) => after.to_json(subsystem),
    };
    ServersAnswer { operation: Some(operation), ..ok(json) }
}

/// The line of a server; that of the name, for a server that a name resolves to.
fn find<'r>(roster: &'r Roster, id: &[u8]) -> Result<&'r RosterLine, SpecRefusal> {
    let refused = || SpecRefusal::new(400, "invalid server ID", "UpstreamBadServerId");
    let id = number(id).ok_or_else(refused)?;
    roster.find(line_of_server(id)).ok_or_else(|| {
        let text = format!("server with ID \"{id}\" does not exist");
        SpecRefusal::new(404, text, "UpstreamServerNotFound")
    })
}

fn number(text: &[u8]) -> Option<u64> {
    conf::units::number(text)
}
