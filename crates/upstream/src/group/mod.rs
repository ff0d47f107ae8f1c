//! A group of servers.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use conf::{Subsystem, Template};
use metrics::Metric;
use net::Address;

use crate::address::Endpoint;
use crate::api::GroupRules;
use crate::attempt::Attempt;
use crate::balance::{Ask, Balance, Round, RoundRobin};
use crate::counters::GroupCounts;
use crate::lease::Lease;
use crate::lines::{GroupLine, GroupLines, LineLookup};
use crate::memory::StateMemory;
use crate::name::GroupName;
use crate::nodes::FollowsNodes;
use crate::peers::Peers;
use crate::pool::GroupPool;
use crate::resolver::ResolvedPeer;
use crate::roster::{Roster, ServerOperation, ServerSpec};
use crate::server::Server;
use crate::settings::ServerCheck;
use crate::sticky::{BoundName, Sticky};
use crate::waiting::GroupLimit;

/// How often a choice is repeated after another generation or process took the free slot.
const PICKS_MAX: usize = 100;

/// A group of servers, shared by all workers.
#[derive(Debug)]
pub struct Group {
    name: GroupName,
    counters: OnceLock<Metric<GroupCounts>>,
    pub(crate) balance: Arc<dyn Balance>,
    sticky: Option<Sticky>,
    pool: GroupPool,
    peers: Mutex<Peers>,
    /// The lines of the peers. Locked before `peers`.
    lines: Mutex<GroupLines>,
    limit: Option<GroupLimit>,
    check: Option<Arc<ServerCheck>>,
    /// Whether a new server is not used before it passes a check.
    checks_newcomers: AtomicBool,
    rules: Option<GroupRules>,
}

/// The parts of a new group.
pub(crate) struct GroupParts {
    pub balance: Arc<dyn Balance>,
    pub sticky: Option<Sticky>,
    pub pool: GroupPool,
    pub lines: GroupLines,
    pub check: Option<Arc<ServerCheck>>,
    pub rules: Option<GroupRules>,
}

#[derive(Debug)]
pub enum ServerChoice {
    Server(Lease),
    /// Every server that could be used is at its limit.
    Busy,
    /// None can be used: "no live upstreams".
    None,
}

impl Group {
    /// The group of a name without an `upstream` block (`proxy_pass http://name:port`): every
    /// address is a server.
    pub fn implicit(subsystem: Subsystem, name: &[u8], addresses: Vec<Address>) -> Arc<Self> {
        Self::of_addresses(GroupName::new(subsystem, name), addresses, StateMemory::process())
    }

    /// The same for a name that cannot be resolved yet.
    pub(crate) fn sought(subsystem: Subsystem, name: &[u8], place: Endpoint) -> Arc<Self> {
        let line = GroupLine {
            lookup: LineLookup::Until(place),
            ..GroupLine::new(ServerSpec::plain(name))
        };
        Self::of_line(GroupName::new(subsystem, name), line, Vec::new(), StateMemory::process())
    }

    /// The same without state that outlives it, for names that only a request has.
    pub fn passing(name: &[u8], addresses: Vec<Address>) -> Arc<Self> {
        let name = GroupName::new(Subsystem::Main, name);
        Self::of_addresses(name, addresses, &StateMemory::default())
    }

    fn of_addresses(name: GroupName, addresses: Vec<Address>, memory: &StateMemory) -> Arc<Self> {
        let line = GroupLine::new(ServerSpec::plain(&name.name));
        Self::of_line(name, line, addresses, memory)
    }

    fn of_line(
        name: GroupName,
        line: GroupLine,
        addresses: Vec<Address>,
        memory: &StateMemory,
    ) -> Arc<Self> {
        let mut lines = GroupLines::new(name);
        lines.add(line, addresses, memory);
        Arc::new(Self::new(GroupParts {
            balance: Arc::new(RoundRobin),
            sticky: None,
            pool: GroupPool::NONE,
            lines,
            check: None,
            rules: None,
        }))
    }

    pub(crate) fn new(parts: GroupParts) -> Self {
        let mut peers = Peers::default();
        let lines = parts.lines;
        peers.replace(&lines.tier(false), &lines.tier(true), |tier| parts.balance.arrange(tier));
        Self {
            name: lines.group.clone(),
            counters: OnceLock::new(),
            balance: parts.balance,
            sticky: parts.sticky,
            pool: parts.pool,
            peers: Mutex::new(peers),
            limit: lines.limit.clone().filter(GroupLimit::has_queue),
            lines: Mutex::new(lines),
            check: parts.check,
            checks_newcomers: AtomicBool::new(false),
            rules: parts.rules,
        }
    }

    /// Applies this generation's limits.
    pub(crate) fn apply_limits(&self) {
        self.servers().iter().for_each(|server| server.apply_limit());
    }

    /// How each line is resolved at run time, by the line's id.
    pub(crate) fn lookups(&self) -> Vec<(u64, LineLookup)> {
        let lines = self.lines();
        lines.lines.iter().map(|line| (line.id, line.lookup.clone())).collect()
    }

    /// Replaces the servers of a line, from the next choice on.
    pub(crate) fn found(&self, line: u64, found: &[ResolvedPeer]) {
        let mut lines = self.lines();
        lines.found(line, found, StateMemory::process());
        self.take_servers(lines, true);
    }

    /// Applies a change from the next choice on. Requests in progress are not affected.
    /// `is_newest`: no later configuration serves, so the limits of this one hold. False: nothing
    /// changes, because the change is about a server that the group does not have, or has already.
    pub fn change(&self, operation: &ServerOperation, is_newest: bool) -> bool {
        let mut lines = self.lines();
        let mut roster = lines.roster();
        let applies = roster.apply(operation);
        if applies {
            lines.adopt(&roster, StateMemory::process());
            self.take_servers(lines, is_newest);
        }
        applies
    }

    /// The servers as they are listed.
    pub fn roster(&self) -> Roster {
        self.lines().roster()
    }

    /// The rules for changes of its servers; `None`: it has no block, and cannot be changed.
    pub fn rules(&self) -> Option<&GroupRules> {
        self.rules.as_ref()
    }

    pub fn subsystem(&self) -> Subsystem {
        self.name.subsystem
    }

    /// Takes over the servers that the lines have now.
    fn take_servers(&self, lines: MutexGuard<'_, GroupLines>, is_newest: bool) {
        let had = self.servers();
        let (primary, backup) = (lines.tier(false), lines.tier(true));
        if self.checks_newcomers.load(Ordering::Relaxed) {
            let known: HashSet<_> = had.iter().map(|old| old.address()).collect();
            let all = primary.iter().chain(&backup);
            all.filter(|new| !known.contains(new.address()))
                .for_each(|new| _ = new.set_healthy(false, 0));
        }
        self.lock().replace(&primary, &backup, |tier| self.balance.arrange(tier));
        drop(lines);
        let have = [primary, backup].concat();
        let left = only(&had, &have, |server| server.limit_key());
        left.iter().for_each(|gone| gone.leave_limit());
        if is_newest {
            left.into_iter().chain(&have).for_each(|server| server.apply_limit());
        }
        for gone in only(&had, &have, |server| server.queue_key()) {
            gone.withdraw();
        }
        for new in only(&have, &had, |server| server.queue_key()) {
            new.admit();
        }
    }

    /// Sets whether newly resolved servers must pass a check before they are used.
    pub(crate) fn set_checks_newcomers(&self, checks: bool) {
        self.checks_newcomers.store(checks, Ordering::Relaxed);
    }

    /// How its servers are checked, if its block has `check`.
    pub fn check(&self) -> Option<&Arc<ServerCheck>> {
        self.check.as_ref()
    }

    pub fn name(&self) -> &[u8] {
        &self.name.name
    }

    /// The name under which it counts. Those of its servers begin with it.
    pub fn metric_name(&self) -> Vec<u8> {
        self.name.metric_name()
    }

    /// What it has done as a whole.
    pub fn counters(&self) -> &Metric<GroupCounts> {
        self.counters.get_or_init(|| Metric::named(&self.name.metric_name()))
    }

    /// The text that is hashed, if the balancer hashes one.
    pub fn key(&self) -> Option<&Template> {
        self.balance.key()
    }

    /// How requests are bound to servers, if they are.
    pub fn sticky(&self) -> Option<&Sticky> {
        self.sticky.as_ref()
    }

    pub fn pool(&self) -> &GroupPool {
        &self.pool
    }

    /// Its servers at the moment, primaries first.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.lock().iter().cloned().collect()
    }

    /// Chooses the server to try next, and counts the request on it.
    pub fn choose(&self, attempt: &mut Attempt, ask: &Ask<'_>) -> ServerChoice {
        let sticky = self.sticky.as_ref().zip(ask.sticky);
        let bound = sticky.and_then(|(sticky, id)| sticky.server(id, ask.now_ms));
        let bound = bound.as_ref().map(BoundName::text);
        let mut peers = self.lock();
        attempt.resume(&peers);
        if peers.is_single() {
            return self.single(&peers.primary.peers[0].server, bound, attempt, ask);
        }
        for backup in [false, true] {
            if let Some(choice) = self.choose_of(&mut peers, backup, bound, attempt, ask) {
                return choice;
            }
        }
        without(&peers, attempt, ask.now_ms)
    }

    /// The limit on requests in progress, if requests wait for servers.
    pub fn limit(&self) -> Option<&GroupLimit> {
        self.limit.as_ref()
    }

    fn choose_of(
        &self,
        peers: &mut Peers,
        backup: bool,
        bound: Option<&[u8]>,
        attempt: &mut Attempt,
        ask: &Ask<'_>,
    ) -> Option<ServerChoice> {
        let (tier, first) = match backup {
            false => (&mut peers.primary, 0),
            true => (&mut peers.backup, peers.primary.peers.len()),
        };
        let mut round = Round { tier, first, attempt, ask };
        for _ in 0..PICKS_MAX {
            let at = self.pick(bound, &mut round)?;
            let server = round.tier.peers[at].server.clone();
            if let Some(lease) = Lease::take(&server, false, &*self.balance, ask.now_ms) {
                server.state.chosen(server.terms.failure_policy, ask.now_ms);
                round.attempt.given(first + at);
                return Some(ServerChoice::Server(lease));
            }
        }
        Some(ServerChoice::Busy)
    }

    fn pick(&self, bound: Option<&[u8]>, round: &mut Round<'_>) -> Option<usize> {
        match bound.and_then(|bound| round.bound(bound)) {
            None => self.balance.pick(round),
            Some(at) => {
                self.balance.bind(round, at);
                Some(at)
            }
        }
    }

    /// The only server is used even after failures.
    fn single(
        &self,
        server: &Arc<Server>,
        bound: Option<&[u8]>,
        attempt: &mut Attempt,
        ask: &Ask<'_>,
    ) -> ServerChoice {
        if !server.is_usable(bound == Some(server.sid())) {
            return ServerChoice::None;
        }
        match Lease::take(server, true, &*self.balance, ask.now_ms) {
            Some(lease) => {
                attempt.given(0);
                ServerChoice::Server(lease)
            }
            None => ServerChoice::Busy,
        }
    }

    fn lines(&self) -> MutexGuard<'_, GroupLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Peers> {
        // After a panic between two steps, weights are off by one choice at most.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FollowsNodes for Group {
    fn follow(&self) {
        self.apply_limits();
    }
}

/// The servers of `these` with a key that none of `others` has.
fn only<'a, K: Eq + Hash>(
    these: &'a [Arc<Server>],
    others: &[Arc<Server>],
    key: impl Fn(&Server) -> Option<K>,
) -> Vec<&'a Arc<Server>> {
    let known: HashSet<K> = others.iter().filter_map(|other| key(other)).collect();
    let is_only = |one: &&Arc<Server>| key(one).is_some_and(|key| !known.contains(&key));
    these.iter().filter(is_only).collect()
}

/// Why no server was chosen. A server that could be used and was not chosen was full, even if it is
/// not full any more: slots are freed at any time.
fn without(peers: &Peers, attempt: &Attempt, now_ms: u64) -> ServerChoice {
    let waits = |(at, server): (usize, &Arc<Server>)| {
        !attempt.has_tried(at) && server.is_live(now_ms, false) && server.is_limited()
    };
    if peers.iter().enumerate().any(waits) { ServerChoice::Busy } else { ServerChoice::None }
}
