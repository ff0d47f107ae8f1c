//! What the servers of a group may be, and the reasons to refuse one.

use std::path::Path;
use std::sync::Arc;

use super::patch::SpecPatch;
use crate::address::{self, Endpoint};
use crate::balance::RefusedParameters;
use crate::roster::{
    DEFAULT_PORT, ROSTER_LINES_MAX, Roster, RosterLine, ServerOperation, ServerSpec,
};
use crate::sticky::SID_LENGTH_MAX;

/// The longest address or service. A domain name has at most 253 bytes.
const TEXT_LENGTH_MAX: usize = 300;

/// The rules for the servers of a group with a block.
#[derive(Clone, Debug)]
pub struct GroupRules {
    /// The file that keeps the servers, if the block has `state`.
    pub state: Option<Arc<Path>>,
    /// A hash of the block's text.
    pub text: u64,
    pub(crate) refused: RefusedParameters,
    /// Whether there is a resolver for names.
    pub(crate) resolves: bool,
    /// Whether a port is required, as in `stream`.
    pub(crate) needs_port: bool,
}

/// Why a request for a change is refused; the texts and codes are those of NGINX Plus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecRefusal {
    pub status: u16,
    pub text: String,
    pub code: &'static str,
}

impl SpecRefusal {
    pub fn new(status: u16, text: impl Into<String>, code: &'static str) -> Self {
        Self { status, text: text.into(), code }
    }

    pub(super) fn bad(text: impl Into<String>, code: &'static str) -> Self {
        Self::new(400, text, code)
    }

    /// The same about an entry of a list, whose number is counted from 1.
    pub(super) fn in_entry(self, at: usize) -> Self {
        Self { text: format!("entry {} of the list: {}", at + 1, self.text), ..self }
    }
}

impl GroupRules {
    /// The operation that adds a server.
    pub fn add(&self, roster: &Roster, wanted: &SpecPatch) -> Result<ServerOperation, SpecRefusal> {
        let spec = self.new_spec(wanted)?;
        if roster.lines().iter().any(|line| is_same_server(&line.spec, &spec)) {
            return Err(SpecRefusal::new(409, "entry exists", "EntryExists"));
        }
        if roster.lines().len() >= ROSTER_LINES_MAX {
            let text = format!("the group has {ROSTER_LINES_MAX} servers already");
            return Err(SpecRefusal::bad(text, "UpstreamOutOfMemory"));
        }
        Ok(ServerOperation::Add { id: roster.next_id(), spec })
    }

    /// The server that a request wants to have.
    pub(super) fn new_spec(&self, wanted: &SpecPatch) -> Result<ServerSpec, SpecRefusal> {
        let Some(text) = &wanted.server else {
            return Err(SpecRefusal::bad("missing \"server\" argument", "UpstreamConfFormatError"));
        };
        let mut spec = wanted.applied_to(&ServerSpec::plain(text));
        self.check_place(&mut spec, wanted.service.as_deref())?;
        self.check(&spec, wanted)?;
        Ok(spec)
    }

    /// The operation that changes a server.
    pub fn set(
        &self,
        line: &RosterLine,
        wanted: &SpecPatch,
    ) -> Result<ServerOperation, SpecRefusal> {
        let id = line.id;
        if wanted.server.as_deref().is_some_and(|server| server != line.spec.text()) {
            let text = format!("server \"{id}\" address is immutable");
            return Err(SpecRefusal::bad(text, "UpstreamServerImmutable"));
        }
        let fixed = |name: &str| {
            let text = format!("parameter \"{name}\" of server \"{id}\" cannot be changed");
            Err(SpecRefusal::bad(text, "UpstreamConfFormatError"))
        };
        if wanted.backup.is_some_and(|backup| backup != line.spec.backup) {
            return fixed("backup");
        }
        let service = line.spec.service.as_deref().unwrap_or_default();
        if wanted.service.as_deref().is_some_and(|wanted| wanted != service) {
            return fixed("service");
        }
        let spec = wanted.applied_to(&line.spec);
        self.check(&spec, wanted)?;
        Ok(ServerOperation::Set { id, spec })
    }

    /// Checks the address. A name is resolved at run time.
    fn check_place(
        &self,
        spec: &mut ServerSpec,
        service: Option<&[u8]>,
    ) -> Result<(), SpecRefusal> {
        let text = String::from_utf8_lossy(spec.text()).into_owned();
        let bad = |why: &str| Err(SpecRefusal::bad(why, "UpstreamBadAddress"));
        let longest = spec.text().len().max(service.map_or(0, <[u8]>::len));
        if longest > TEXT_LENGTH_MAX || text.bytes().any(|byte| byte.is_ascii_control()) {
            return bad("\"invalid host\" while parsing");
        }
        let parsed = match address::parse(spec.text(), DEFAULT_PORT) {
            Ok(parsed) => parsed,
            Err(refusal) => return bad(&format!("\"{refusal}\" while parsing")),
        };
        let is_name = matches!(parsed.place, Endpoint::Named { .. });
        match service {
            Some(b"") => {
                return Err(SpecRefusal::bad("\"service\" is empty", "UpstreamBadService"));
            }
            Some(_) if parsed.port_said => {
                return bad(&format!("service upstream \"{text}\" may not have port"));
            }
            Some(_) if !is_name => {
                return bad(&format!("service upstream \"{text}\" requires domain name"));
            }
            None if self.needs_port && parsed.lacks_port() => {
                return bad(&format!("no port in upstream \"{text}\""));
            }
            _ => {}
        }
        if is_name && !self.resolves {
            let text = "no resolver defined to resolve";
            return Err(SpecRefusal::bad(text, "UpstreamConfNoResolver"));
        }
        spec.resolve = is_name;
        spec.service = service.map(Arc::from);
        Ok(())
    }

    fn check(&self, spec: &ServerSpec, wanted: &SpecPatch) -> Result<(), SpecRefusal> {
        if spec.terms.weight == 0 {
            return Err(SpecRefusal::bad("invalid \"weight\"", "UpstreamBadWeight"));
        }
        if self.refused.slow_start && wanted.slow_start_ms.is_some_and(|time| time > 0) {
            return Err(SpecRefusal::bad("invalid \"slow_start\"", "UpstreamBadSlowStart"));
        }
        if self.refused.backup && spec.backup {
            return Err(SpecRefusal::bad("the upstream has no backup", "UpstreamNoBackup"));
        }
        if spec.terms.route.as_ref().is_some_and(|route| route.len() > SID_LENGTH_MAX) {
            return Err(SpecRefusal::bad("route is too long", "UpstreamBadRoute"));
        }
        Ok(())
    }
}

/// Whether both name one server of one tier, with or without its port.
fn is_same_server(one: &ServerSpec, other: &ServerSpec) -> bool {
    ListedPlace::of(one) == ListedPlace::of(other)
}

/// What makes a server the same in a request and in a roster: its tier and its place, with or
/// without its port.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct ListedPlace {
    backup: bool,
    service: Option<Arc<[u8]>>,
    place: Option<Endpoint>,
}

impl ListedPlace {
    pub(super) fn of(spec: &ServerSpec) -> Self {
        let place = address::parse(spec.text(), DEFAULT_PORT).ok().map(|at| at.place);
        Self { backup: spec.backup, service: spec.service.clone(), place }
    }
}
