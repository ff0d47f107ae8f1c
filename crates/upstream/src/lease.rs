//! A request in progress on a server, from the choice to the end of the reply.

use std::fmt;
use std::sync::Arc;

use net::Address;

use crate::balance::Balance;
use crate::limit::{ServerSlot, ServerSlots};
use crate::pool::{GroupPool, Handoff, PoolKey, PoolOrigin, PooledConnection, worker};
use crate::server::Server;
use crate::times::Until;

/// One request in progress; dropping it ends the request.
///
/// If it is dropped without a result, because the client is gone, the server is not judged.
#[derive(Debug)]
pub struct Lease {
    server: Arc<Server>,
    /// Whether its server is the only one, so that failures do not count.
    single: bool,
    /// The times that the balancer needs.
    until: Option<Until>,
    /// When it began, while the balancer counts it among the requests without a time.
    inflight: Option<u64>,
    /// The times that are known, and not counted yet.
    uncounted: [Option<(Until, u64)>; 2],
    /// Its slot of the limit. Freed after the request is no longer counted.
    slot: Option<ServerSlot<Handoff>>,
}

/// An event for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// The server has failed too often. A warning.
    Disabled,
}

/// nginx's words.
impl fmt::Display for LeaseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "upstream server temporarily disabled",
        })
    }
}

impl Lease {
    /// Begins a request on the server; `None`: it has no free slot.
    pub(crate) fn take(
        server: &Arc<Server>,
        single: bool,
        balance: &dyn Balance,
        now_ms: u64,
    ) -> Option<Self> {
        let slot = match &server.limited {
            Some(limited) => Some(limited.slots.try_take()?),
            None => None,
        };
        Some(Self::begin(server, slot, single, balance, now_ms))
    }

    /// Begins a request with a slot that was waited for.
    pub(crate) fn granted(
        server: &Arc<Server>,
        slot: ServerSlot<Handoff>,
        single: bool,
        balance: &dyn Balance,
        now_ms: u64,
    ) -> Self {
        Self::begin(server, Some(slot), single, balance, now_ms)
    }

    /// Counts a request that has its slot.
    fn begin(
        server: &Arc<Server>,
        slot: Option<ServerSlot<Handoff>>,
        single: bool,
        balance: &dyn Balance,
        now_ms: u64,
    ) -> Self {
        server.state.count();
        let inflight = (!single && balance.counts_inflight()).then_some(now_ms);
        if inflight.is_some() {
            server.state.times.begin(now_ms);
        }
        Self {
            server: server.clone(),
            single,
            until: balance.until(),
            inflight,
            uncounted: [None; 2],
            slot,
        }
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub fn address(&self) -> &Address {
        self.server.address()
    }

    /// The address, as in `$upstream_addr` and in the log.
    pub fn name(&self) -> &[u8] {
        self.server.name()
    }

    /// The request failed in a way that counts for `max_fails`.
    #[must_use = "the event belongs into the log"]
    pub fn failed(&mut self, now_ms: u64) -> Option<LeaseEvent> {
        let Server { state, terms, .. } = &*self.server;
        if self.single {
            state.forgive();
            return None;
        }
        if !state.failed(terms.failure_policy, terms.weight, now_ms) {
            return None;
        }
        self.server.withdraw();
        Some(LeaseEvent::Disabled)
    }

    /// The request succeeded, or is sent to another server in a way that does not count.
    pub fn succeeded(&mut self, now_ms: u64) {
        let Server { state, terms, .. } = &*self.server;
        match self.single {
            true => state.forgive(),
            false if state.succeeded(terms.failure_policy, now_ms) => self.server.admit(),
            false => {}
        }
    }

    /// Records the time of an event. It counts once the request ends normally; a balancer that
    /// counts requests in progress needs it at once.
    pub fn reached(&mut self, until: Until, time_ms: u64) {
        if self.inflight.is_some() && self.until == Some(until) {
            self.server.state.times.add(until, time_ms);
            self.end_inflight();
        } else if let Some(free) = self.uncounted.iter_mut().find(|time| time.is_none()) {
            *free = Some((until, time_ms));
        }
    }

    /// All that the server sent arrived within this time and was passed to the client. Only such
    /// requests count, because servers that fail fast would be preferred otherwise.
    pub fn last_byte(&mut self, time_ms: u64) {
        if self.until.is_some() {
            let times = &self.server.state.times;
            times.add(Until::LastByte, time_ms);
            let earlier = self.uncounted.iter_mut().filter_map(Option::take);
            earlier.for_each(|(until, time_ms)| times.add(until, time_ms));
        }
    }

    /// Ends the request and keeps its connection, which has that origin, for the next request of
    /// this worker, or hands it to another worker whose request waits for this server and needs
    /// one.
    ///
    /// The stream of a [shared](crate::pool::SharedConnection) connection ends with the drop of its
    /// lease: a request that waits gets the slot alone, and opens a stream or a connection itself.
    pub fn end_with(
        mut self,
        pool: &GroupPool,
        origin: Option<Arc<PoolOrigin>>,
        connection: PooledConnection,
    ) {
        let key = PoolKey { to: self.address().clone(), origin };
        let is_awaited =
            |slots: &ServerSlots<Handoff>| slots.waiting() > 0 && slots.awaits_handoff(worker());
        let slot = self.slot.take_if(|slot| is_awaited(slot.slots()));
        let Some(slot) = slot else { return pool.give_back(key, connection) };
        drop(self);
        match Handoff::of(pool, key, connection) {
            // It is returned and closed if the waiting request has just left.
            Some(handoff) => drop(slot.release_with(handoff)),
            None => drop(slot),
        }
    }

    fn end_inflight(&mut self) {
        if let Some(began_ms) = self.inflight.take() {
            self.server.state.times.end(began_ms);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end_inflight();
        self.server.state.free();
    }
}
