//! The `server` lines of a group, and the servers that each of them has at the moment.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, PoisonError};

use net::Address;

use crate::address::{self, Endpoint};
use crate::memory::{LastResolved, StateMemory};
use crate::name::GroupName;
use crate::resolver::{NameServers, ResolvedPeer, WatchedName};
use crate::roster::{
    CHILD_SHIFT, DEFAULT_PORT, LineOwner, Roster, RosterLine, ServerSpec, line_of_server,
};
use crate::server::{Server, ServerTerms};
use crate::waiting::GroupLimit;

/// A `server` line, or a server that the API has added.
#[derive(Debug)]
pub(crate) struct GroupLine {
    /// Its number in the group.
    pub id: u64,
    pub owner: LineOwner,
    pub spec: ServerSpec,
    pub lookup: LineLookup,
    pub servers: Vec<ResolvedServer>,
    /// The last result of resolving it, with which the next generation begins.
    pub known: LastResolved,
}

#[derive(Clone, Debug)]
pub(crate) struct ResolvedServer {
    pub server: Arc<Server>,
    pub backup: bool,
}

/// How a line's name is resolved at run time.
#[derive(Clone, Debug)]
pub(crate) enum LineLookup {
    None,
    /// Periodically.
    Watch(WatchedName, LineResolver),
    /// Until a lookup succeeds.
    Until(Endpoint),
}

#[derive(Clone, Debug)]
pub struct LineResolver {
    pub names: NameServers,
    pub timeout_ms: u64,
}

#[derive(Debug)]
pub(crate) struct GroupLines {
    pub group: GroupName,
    pub lines: Vec<GroupLine>,
    /// The limit of each server.
    pub limit: Option<GroupLimit>,
    /// The resolver of lines that are added at run time.
    pub resolver: Option<LineResolver>,
    next_id: u64,
    next_child: u64,
}

/// A server that a line is to have.
struct WantedServer {
    address: Address,
    terms: ServerTerms,
    backup: bool,
    /// The id that it must have; `None`: that of another server of the line.
    id: Option<u64>,
}

impl GroupLines {
    pub fn new(group: GroupName) -> Self {
        Self { group, lines: Vec::new(), limit: None, resolver: None, next_id: 0, next_child: 1 }
    }

    /// Adds a line with its known addresses.
    pub fn add(&mut self, line: GroupLine, addresses: Vec<Address>, memory: &StateMemory) {
        self.lines.push(GroupLine { id: self.next_id, ..line });
        self.next_id += 1;
        let at = self.lines.len() - 1;
        self.provide(at, self.lines[at].at(addresses), memory);
        let known = self.lines[at].known();
        if !known.is_empty() {
            self.resolved(at, &known, memory);
        }
    }

    /// Replaces the servers of a line; servers that it already has are kept.
    pub fn found(&mut self, id: u64, found: &[ResolvedPeer], memory: &StateMemory) {
        if let Some(at) = self.lines.iter().position(|line| line.id == id) {
            self.resolved(at, found, memory);
        }
    }

    /// The servers as they are listed.
    pub fn roster(&self) -> Roster {
        let lines = self.lines.iter().map(|line| {
            let GroupLine { id, owner, spec, .. } = line;
            RosterLine { id: *id, owner: *owner, spec: spec.clone() }
        });
        Roster { next_id: self.next_id, lines: lines.collect() }
    }

    /// Makes the lines those of a roster. A line that stays keeps its servers and their state.
    pub fn adopt(&mut self, roster: &Roster, memory: &StateMemory) {
        let mut had = VecDeque::from(std::mem::take(&mut self.lines));
        self.next_id = roster.next_id.max(self.next_id);
        let listed: HashSet<u64> = roster.lines.iter().map(|line| line.id).collect();
        let mut changed = Vec::new();
        for line in &roster.lines {
            let known = take_line(&mut had, line, &listed);
            if known.as_ref().is_none_or(|had| had.id != line.id || had.spec != line.spec) {
                changed.push(self.lines.len());
            }
            let (id, owner, spec) = (line.id, line.owner, line.spec.clone());
            let known = known.unwrap_or_else(|| self.new_line(spec.clone(), memory));
            self.lines.push(GroupLine { id, owner, spec, ..known });
        }
        changed.into_iter().for_each(|at| self.renew(at, memory));
    }

    /// A line that the configuration does not have.
    fn new_line(&self, spec: ServerSpec, memory: &StateMemory) -> GroupLine {
        let mut line = GroupLine::new(spec);
        let parsed = address::parse(line.spec.text(), DEFAULT_PORT).map(|parsed| parsed.place);
        if let (Ok(Endpoint::Named { host, port }), Some(resolver)) = (parsed, &self.resolver)
            && line.spec.resolve
        {
            let service = line.spec.service.as_deref().map(Box::from);
            let watched = WatchedName { name: host, service, port };
            line.known = memory.found(&self.group, &watched);
            line.lookup = LineLookup::Watch(watched, resolver.clone());
        }
        line
    }

    /// Gives a line the servers of its present parameters.
    fn renew(&mut self, at: usize, memory: &StateMemory) {
        let line = &self.lines[at];
        let addresses = match &line.lookup {
            LineLookup::Watch(..) => return self.resolved(at, &line.known(), memory),
            LineLookup::None if line.servers.is_empty() => line.spec.addresses(),
            LineLookup::None | LineLookup::Until(_) => line.addresses(),
        };
        self.provide(at, line.at(addresses), memory);
    }

    fn resolved(&mut self, at: usize, found: &[ResolvedPeer], memory: &StateMemory) {
        self.provide(at, self.lines[at].of_peers(found), memory);
        let known = &self.lines[at].known;
        *known.lock().unwrap_or_else(PoisonError::into_inner) = found.to_vec();
    }

    /// Gives a line these servers. Those that it has already are kept; one whose parameters have
    /// changed keeps its state.
    fn provide(&mut self, at: usize, wanted: Vec<WantedServer>, memory: &StateMemory) {
        let line = self.lines[at].id;
        let mut had = std::mem::take(&mut self.lines[at].servers);
        let kept: Vec<_> = wanted.iter().map(|one| one.take_same(line, &mut had)).collect();
        self.lines[at].servers = kept.iter().flatten().cloned().collect();
        let mut servers = Vec::new();
        for (wanted, kept) in wanted.into_iter().zip(kept) {
            let server = kept.unwrap_or_else(|| {
                let changed = wanted.take_changed(&mut had);
                let made = self.server(line, wanted, changed.as_ref(), memory);
                // It counts among those with its address from now on.
                self.lines[at].servers.push(made.clone());
                made
            });
            servers.push(server);
        }
        self.lines[at].servers = servers;
    }

    /// A new server of a line, or one that takes the place of another with the same address.
    fn server(
        &mut self,
        line: u64,
        wanted: WantedServer,
        before: Option<&ResolvedServer>,
        memory: &StateMemory,
    ) -> ResolvedServer {
        let WantedServer { address, terms, backup, id } = wanted;
        let before = before.map(|before| &before.server);
        let twin = before.map_or_else(|| self.free_twin(&address), |before| before.twin);
        let kept_id = before.map(|before| before.id).filter(|id| *id != line && is_of(*id, line));
        let id = id.or(kept_id).unwrap_or_else(|| self.child_id(line));
        let state = memory.server_state(&self.group, &address, twin);
        let mut server = Server::new(address, terms, state);
        (server.id, server.twin) = (id, twin);
        let limit = self.limit.as_ref();
        server.limited =
            limit.and_then(|limit| limit.of_server(&server.name, server.terms.max_conns, twin));
        ResolvedServer { server: Arc::new(server), backup }
    }

    fn child_id(&mut self, line: u64) -> u64 {
        let number = self.next_child;
        self.next_child += 1;
        number << CHILD_SHIFT | line
    }

    /// Two servers with one address have separate states.
    fn free_twin(&self, address: &Address) -> u32 {
        let all = self.lines.iter().flat_map(|line| &line.servers);
        let same = all.filter(|one| one.server.address == *address);
        let used: Vec<u32> = same.map(|one| one.server.twin).collect();
        (0..).find(|twin| !used.contains(twin)).unwrap_or_default()
    }

    /// The servers of a tier, in the lines' order.
    pub fn tier(&self, backup: bool) -> Vec<Arc<Server>> {
        let found = self.lines.iter().flat_map(|line| &line.servers);
        found.filter(|found| found.backup == backup).map(|found| found.server.clone()).collect()
    }
}

impl GroupLine {
    /// A line that is not resolved at run time.
    pub fn new(spec: ServerSpec) -> Self {
        Self {
            id: 0,
            owner: LineOwner::Configuration,
            spec,
            lookup: LineLookup::None,
            servers: Vec::new(),
            known: LastResolved::default(),
        }
    }

    /// The last result, with the line's present port.
    fn known(&self) -> Vec<ResolvedPeer> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let LineLookup::Watch(WatchedName { service: None, port, .. }, _) = &self.lookup {
            known.iter_mut().for_each(|peer| peer.address.set_port(*port));
        }
        known
    }

    /// The addresses that it has now.
    fn addresses(&self) -> Vec<Address> {
        self.servers.iter().map(|one| one.server.address.clone()).collect()
    }

    /// A server for each of these addresses. The first has the id of the line.
    fn at(&self, addresses: Vec<Address>) -> Vec<WantedServer> {
        let wanted = addresses.into_iter().enumerate().map(|(number, address)| WantedServer {
            address,
            terms: self.spec.terms.clone(),
            backup: self.spec.backup,
            id: (number == 0).then_some(self.id),
        });
        wanted.collect()
    }

    fn of_peers(&self, found: &[ResolvedPeer]) -> Vec<WantedServer> {
        let wanted = found.iter().filter_map(|peer| {
            let (terms, backup) = self.terms_of(peer)?;
            Some(WantedServer { address: Address::Ip(peer.address), terms, backup, id: None })
        });
        wanted.collect()
    }

    /// The parameters of a server that was found, and whether it is a backup. `None`: it is not
    /// used, because a line of backups has no backups of its own.
    fn terms_of(&self, peer: &ResolvedPeer) -> Option<(ServerTerms, bool)> {
        let mut terms = self.spec.terms.clone();
        if let Some(name) = &peer.name {
            terms.text = name.to_string().into_bytes().into();
            if terms.weight == 1 {
                terms.weight = u32::from(peer.weight);
            }
        }
        match (self.spec.backup, peer.backup) {
            (true, true) => None,
            (own, other) => Some((terms, own || other)),
        }
    }
}

impl WantedServer {
    /// Takes the server that it is.
    fn take_same(&self, line: u64, had: &mut Vec<ResolvedServer>) -> Option<ResolvedServer> {
        let has_id = |id: u64| self.id.map_or(is_of(id, line), |own| own == id);
        let same = had.iter().position(|ResolvedServer { server, backup }| {
            server.address == self.address
                && *backup == self.backup
                && server.terms == self.terms
                && has_id(server.id)
        });
        same.map(|at| had.remove(at))
    }

    /// Takes the server whose parameters have changed to these.
    fn take_changed(&self, had: &mut Vec<ResolvedServer>) -> Option<ResolvedServer> {
        let changed = had.iter().position(|old| old.server.address == self.address);
        changed.map(|at| had.remove(at))
    }
}

impl ServerSpec {
    /// The addresses of a line that is new; a name without `resolve` is looked up by the system.
    fn addresses(&self) -> Vec<Address> {
        let parsed = address::parse(self.text(), DEFAULT_PORT);
        parsed.map(|parsed| parsed.place.addresses()).unwrap_or_default()
    }
}

/// The line that is continued by another of the same id, or else of the same place and an id that
/// is not `listed` any more.
fn take_line(
    had: &mut VecDeque<GroupLine>,
    next: &RosterLine,
    listed: &HashSet<u64>,
) -> Option<GroupLine> {
    let is_same = |line: &GroupLine| line.spec.is_same_place(&next.spec);
    let by_id = had.iter().position(|line| line.id == next.id && is_same(line));
    let is_free = |line: &GroupLine| is_same(line) && !listed.contains(&line.id);
    let at = by_id.or_else(|| had.iter().position(is_free))?;
    had.remove(at)
}

fn is_of(id: u64, line: u64) -> bool {
    line_of_server(id) == line
}
