//! The limit of a group, and of each of its servers.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use observe::Level;

use crate::limit::{Backlog, LimitStats, SLOTS_MAX, ServerSlots, WaitQueue};
use crate::nodes::{NodeCount, NodeLimit};
use crate::pool::Handoff;

#[derive(Clone)]
pub struct GroupLimit {
    pub(crate) zone: Arc<LimitZone>,
    /// The group's number, unique in the zone.
    pub(crate) group: u64,
    pub(crate) rule: LimitRule,
    pub(crate) backlog: Backlog,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) level: Level,
}

/// The counted requests, and the maximum.
#[derive(Clone, Debug)]
pub(crate) enum LimitRule {
    /// `limit_upstream_conn`: by address, with all groups of the zone.
    Zone { limit: NodeLimit },
    /// `queue`: by server, up to its `max_conns`.
    Group,
    /// `max_conns` alone: the same, without waiting.
    NoQueue,
}

/// A zone in one configuration. A group without `limit_upstream_conn` has a zone of its own.
pub(crate) struct LimitZone {
    /// The counts, which outlive configurations.
    queue: Arc<WaitQueue<Handoff>>,
    /// By server: the maximum of each group.
    maxima: Mutex<HashMap<Box<[u8]>, Vec<OwnMaximum>>>,
}

/// The maximum of one server of one group.
#[derive(Clone, Debug)]
struct OwnMaximum {
    group: u64,
    twin: u32,
    max_conns: u32,
    limit: Option<NodeLimit>,
}

/// A server's part of a limit.
#[derive(Clone)]
pub(crate) struct LimitedServer {
    pub slots: Arc<ServerSlots<Handoff>>,
    zone: Arc<LimitZone>,
    group: u64,
    twin: u32,
}

impl GroupLimit {
    /// How long a request may wait; `None`: as long as the read timeout.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// The status of a request that has waited too long.
    pub fn timeout_status(&self) -> u16 {
        match self.rule {
            LimitRule::Zone { .. } => 408,
            LimitRule::Group | LimitRule::NoQueue => 502,
        }
    }

    /// The level of log lines about waiting.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The counters of all groups that share the limit.
    pub fn stats(&self) -> LimitStats {
        self.zone.queue.stats()
    }

    /// How many requests may wait at once; `None`: any number.
    pub fn queue_max(&self) -> Option<u32> {
        let (Backlog::OfServer(most) | Backlog::OfQueue(most)) = self.backlog;
        Some(most)
    }

    pub(crate) fn has_queue(&self) -> bool {
        !matches!(self.rule, LimitRule::NoQueue)
    }

    /// Who has the number of nodes, if they share the limit.
    pub(crate) fn nodes(&self) -> Option<&Arc<NodeCount>> {
        match &self.rule {
            LimitRule::Zone { limit } => limit.nodes(),
            LimitRule::Group | LimitRule::NoQueue => None,
        }
    }

    /// The slots of a server, if it has a limit. `twin`: how many servers of the group before it
    /// have its address.
    pub(crate) fn of_server(
        &self,
        name: &[u8],
        max_conns: u32,
        twin: u32,
    ) -> Option<LimitedServer> {
        if max_conns == 0 && !self.has_queue() {
            return None;
        }
        let max_conns = if max_conns == 0 { SLOTS_MAX } else { max_conns };
        let (limit, name) = match (&self.rule, twin) {
            (LimitRule::Zone { limit }, _) => (Some(limit.clone()), name.to_vec()),
            (_, 0) => (None, name.to_vec()),
            // Each of two `server` lines with one address has its own `max_conns`.
            (_, twin) => (None, [name, b"#", twin.to_string().as_bytes()].concat()),
        };
        let slots =
            self.zone.slots(&name, OwnMaximum { group: self.group, twin, max_conns, limit });
        Some(LimitedServer { slots, zone: self.zone.clone(), group: self.group, twin })
    }
}

impl LimitZone {
    /// A zone of a new configuration with these counts.
    pub fn new(queue: Arc<WaitQueue<Handoff>>) -> Arc<Self> {
        Arc::new(Self { queue, maxima: Mutex::default() })
    }

    /// The slots of a server, after one group has set its maximum.
    fn slots(&self, name: &[u8], own: OwnMaximum) -> Arc<ServerSlots<Handoff>> {
        let mut maxima = self.maxima();
        // Maxima of old addresses must not fill the memory.
        if maxima.len() == maxima.capacity() {
            maxima.retain(|name, _| self.queue.has(name));
        }
        let of_server = maxima.entry(name.into()).or_default();
        match of_server.iter_mut().find(|known| known.is_of(own.group, own.twin)) {
            Some(known) => *known = own,
            None => of_server.push(own),
        }
        let smallest = of_server.iter().map(OwnMaximum::max).min();
        self.queue.slots(name, smallest.unwrap_or(SLOTS_MAX))
    }

    /// The smallest maximum of a server.
    fn max(&self, name: &[u8]) -> Option<u32> {
        self.maxima().get(name)?.iter().map(OwnMaximum::max).min()
    }

    fn forget(&self, name: &[u8], group: u64, twin: u32) {
        let mut maxima = self.maxima();
        let Some(of_server) = maxima.get_mut(name) else { return };
        of_server.retain(|known| !known.is_of(group, twin));
        if of_server.is_empty() {
            maxima.remove(name);
        }
    }

    fn maxima(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Vec<OwnMaximum>>> {
        self.maxima.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnMaximum {
    fn is_of(&self, group: u64, twin: u32) -> bool {
        (self.group, self.twin) == (group, twin)
    }

    /// The number of nodes that share the limit may be another one each time.
    fn max(&self) -> u32 {
        let limit = self.limit.as_ref().map_or(SLOTS_MAX, NodeLimit::of_master);
        limit.min(self.max_conns)
    }
}

impl LimitedServer {
    /// Applies this configuration's maximum.
    pub fn apply(&self) {
        if let Some(max) = self.zone.max(self.slots.name())
            && self.slots.max() != max
        {
            self.slots.set_max(max);
        }
    }

    /// Ends the group's part in the maximum, before it is [applied](Self::apply) again.
    pub fn leave(&self) {
        self.zone.forget(self.slots.name(), self.group, self.twin);
    }

    /// Makes the group's requests stop waiting for it.
    pub fn withdraw(&self) {
        self.slots.withdraw(self.group);
    }

    /// Lets the group's requests wait for it again.
    pub fn admit(&self) {
        self.slots.admit(self.group);
    }
}

impl Debug for GroupLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}, {:?} ms", self.rule, self.backlog, self.timeout_ms)
    }
}

impl Debug for LimitedServer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.slots.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxima_of_addresses_that_have_gone_are_removed() {
        let zone = LimitZone::new(WaitQueue::new());
        let own = |max_conns| OwnMaximum { group: 1, twin: 0, max_conns, limit: None };
        let stays = zone.slots(b"stays", own(7));
        for number in 0..1000 {
            zone.slots(number.to_string().as_bytes(), own(1));
        }
        assert_eq!(zone.max(stays.name()), Some(7));
        assert!(zone.maxima.lock().unwrap().len() < 16);
    }

    #[test]
    fn the_smallest_maximum_of_all_groups_holds_until_that_group_leaves() {
        let zone = LimitZone::new(WaitQueue::new());
        let of = |group, max_conns| OwnMaximum { group, twin: 0, max_conns, limit: None };
        let slots = zone.slots(b"a", of(1, 5));
        zone.slots(b"a", of(2, 3));
        assert_eq!(zone.max(b"a"), Some(3));
        zone.slots(b"a", of(2, 9));
        assert_eq!(zone.max(b"a"), Some(5), "a changed maximum replaces the old one");
        let limited = LimitedServer { slots: slots.clone(), zone: zone.clone(), group: 1, twin: 0 };
        limited.leave();
        limited.apply();
        assert_eq!((zone.max(b"a"), slots.max()), (Some(9), 9));
    }
}
