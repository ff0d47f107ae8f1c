//! The `server` lines of a group, and the servers that each of them has at the moment.

use std::sync::{Arc, PoisonError};

use net::Address;

use crate::address::Endpoint;
use crate::memory::{LastResolved, StateMemory};
use crate::name::GroupName;
use crate::resolver::{NameServers, ResolvedPeer, WatchedName};
use crate::server::{Server, ServerTerms};
use crate::waiting::GroupLimit;

/// A `server` line.
#[derive(Debug)]
pub(crate) struct GroupLine {
    pub terms: ServerTerms,
    pub backup: bool,
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
}

impl GroupLines {
    pub fn new(group: GroupName) -> Self {
        Self { group, lines: Vec::new(), limit: None }
    }

    /// Adds a line with its known addresses.
    pub fn add(&mut self, line: GroupLine, addresses: Vec<Address>, memory: &StateMemory) {
        self.lines.push(line);
        let at = self.lines.len() - 1;
        for address in addresses {
            let (terms, backup) = (self.lines[at].terms.clone(), self.lines[at].backup);
            let server = self.server(address, terms, memory);
            self.lines[at].servers.push(ResolvedServer { server, backup });
        }
        let known = self.lines[at].known();
        if !known.is_empty() {
            self.found(at, &known, memory);
        }
    }

    /// Replaces the servers of a line; servers that it already has are kept.
    pub fn found(&mut self, at: usize, found: &[ResolvedPeer], memory: &StateMemory) {
        let had = std::mem::take(&mut self.lines[at].servers);
        for peer in found {
            let line = &self.lines[at];
            let Some((terms, backup)) = line.terms_of(peer) else { continue };
            let same =
                |old: &&ResolvedServer| old.backup == backup && is_same(&old.server, peer, &terms);
            let server = match had.iter().find(same) {
                Some(old) => old.server.clone(),
                None => self.server(Address::Ip(peer.address), terms, memory),
            };
            self.lines[at].servers.push(ResolvedServer { server, backup });
        }
        let known = &self.lines[at].known;
        *known.lock().unwrap_or_else(PoisonError::into_inner) = found.to_vec();
    }

    /// The servers of a tier, in the lines' order.
    pub fn tier(&self, backup: bool) -> Vec<Arc<Server>> {
        let found = self.lines.iter().flat_map(|line| &line.servers);
        found.filter(|found| found.backup == backup).map(|found| found.server.clone()).collect()
    }

    /// Two servers with one address have separate states.
    fn server(&self, address: Address, terms: ServerTerms, memory: &StateMemory) -> Arc<Server> {
        let all = self.lines.iter().flat_map(|line| &line.servers);
        let twin = all.filter(|found| found.server.address == address).count() as u32;
        let state = memory.server_state(&self.group, &address, twin);
        let mut server = Server::new(address, terms, state);
        let limit = self.limit.as_ref();
        server.limited =
            limit.and_then(|limit| limit.of_server(&server.name, server.terms.max_conns, twin));
        Arc::new(server)
    }
}

impl GroupLine {
    /// A line that is not resolved at run time.
    pub fn new(terms: ServerTerms, backup: bool) -> Self {
        Self {
            terms,
            backup,
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

    /// The parameters of a server that was found, and whether it is a backup. `None`: it is not
    /// used, because a line of backups has no backups of its own.
    fn terms_of(&self, peer: &ResolvedPeer) -> Option<(ServerTerms, bool)> {
        let mut terms = self.terms.clone();
        if let Some(name) = &peer.name {
            terms.text = name.to_string().into_bytes().into();
            if terms.weight == 1 {
                terms.weight = u32::from(peer.weight);
            }
        }
        match (self.backup, peer.backup) {
            (true, true) => None,
            (own, other) => Some((terms, own || other)),
        }
    }
}

fn is_same(server: &Server, peer: &ResolvedPeer, terms: &ServerTerms) -> bool {
    server.address == Address::Ip(peer.address)
        && server.terms.weight == terms.weight
        && server.terms.text == terms.text
}
