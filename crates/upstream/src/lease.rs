//! A request in progress on a server, from the choice to the end of the reply.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use net::Address;

use crate::balance::Balance;
use crate::limit::{ServerSlot, ServerSlots};
use crate::pool::{GroupPool, Handoff, PoolKey, PooledConnection, worker};
use crate::server::Server;
use crate::times::Until;

/// One request in progress; dropping it ends the request.
///
/// Whoever drops it without a verdict (the client went away) says nothing about the server.
#[derive(Debug)]
pub struct Lease {
    server: Arc<Server>,
    /// Whether its server is the only one: failures are not held against it.
    single: bool,
    /// The times that the balancer asks for.
    until: Option<Until>,
    /// When it began, as long as the balancer counts it among those whose time is not known yet.
    inflight: Option<u64>,
    header_ms: Option<u64>,
    is_header_counted: bool,
    /// Its place in the limit. Given back after the request has been counted out.
    slot: Option<ServerSlot<Handoff>>,
}

/// What is worth a line in the log.
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
    /// Takes a place on the server; `None`: it has none.
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

    /// The same with a slot that was waited for.
    pub(crate) fn granted(
        server: &Arc<Server>,
        slot: ServerSlot<Handoff>,
        single: bool,
        balance: &dyn Balance,
        now_ms: u64,
    ) -> Self {
        Self::begin(server, Some(slot), single, balance, now_ms)
    }

    /// Counts a request that has its place.
    fn begin(
        server: &Arc<Server>,
        slot: Option<ServerSlot<Handoff>>,
        single: bool,
        balance: &dyn Balance,
        now_ms: u64,
    ) -> Self {
        server.standing.count();
        let inflight = (!single && balance.counts_inflight()).then_some(now_ms);
        if inflight.is_some() {
            server.standing.times.begin(now_ms);
        }
        Self {
            server: server.clone(),
            single,
            until: balance.until(),
            inflight,
            header_ms: None,
            is_header_counted: false,
            slot,
        }
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Where to connect to.
    pub fn address(&self) -> &Address {
        self.server.address()
    }

    /// The address as `$upstream_addr` and the log have it.
    pub fn name(&self) -> &[u8] {
        self.server.name()
    }

    /// The request failed for reasons that count for `max_fails`.
    #[must_use = "the event belongs into the log"]
    pub fn failed(&mut self, now_ms: u64) -> Option<LeaseEvent> {
        let Server { standing, terms, .. } = &*self.server;
        if self.single {
            standing.forgive();
            return None;
        }
        if !standing.failed(terms.patience, terms.weight, now_ms) {
            return None;
        }
        self.server.withdraw();
        Some(LeaseEvent::Disabled)
    }

    /// The server did what it was asked for, or the next one is asked for reasons that do not
    /// count.
    pub fn succeeded(&mut self, now_ms: u64) {
        let Server { standing, terms, .. } = &*self.server;
        match self.single {
            true => standing.forgive(),
            false if standing.succeeded(terms.patience, now_ms) => self.server.admit(),
            false => {}
        }
    }

    /// The head of the reply was there so long after the beginning.
    pub fn header_time(&mut self, time_ms: u64) {
        self.header_ms = Some(time_ms);
        // Who looks at requests in progress wants to know at once.
        if self.inflight.is_some() && self.until == Some(Until::Header) {
            self.server.standing.times.add(Until::Header, time_ms);
            self.is_header_counted = true;
            self.end_inflight();
        }
    }

    /// The whole reply was there, and the client was given it: only such replies are counted, lest
    /// servers that fail fast are preferred.
    pub fn last_byte_time(&mut self, time_ms: u64) {
        let (Some(_), Some(header_ms)) = (self.until, self.header_ms) else { return };
        let times = &self.server.standing.times;
        times.add(Until::LastByte, time_ms);
        if !self.is_header_counted {
            times.add(Until::Header, header_ms);
        }
    }

    /// Ends it, and keeps its connection, made from that local address, for the next request: of
    /// this worker or, if that one waits for this server and has no connection, of the worker whose
    /// turn it is.
    pub fn end_with(
        mut self,
        pool: &GroupPool,
        from: Option<SocketAddr>,
        connection: PooledConnection,
    ) {
        let key = PoolKey { to: self.address().clone(), from };
        let is_awaited =
            |slots: &ServerSlots<Handoff>| slots.waiting() > 0 && slots.awaits_gift(worker());
        let slot = self.slot.take_if(|slot| is_awaited(slot.slots()));
        let Some(slot) = slot else { return pool.give_back(key, connection) };
        drop(self);
        match Handoff::of(pool, key, connection) {
            // It comes back if whoever waited has just left, and is closed.
            Some(gift) => drop(slot.release_with(gift)),
            None => drop(slot),
        }
    }

    fn end_inflight(&mut self) {
        if let Some(began_ms) = self.inflight.take() {
            self.server.standing.times.end(began_ms);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end_inflight();
        self.server.standing.free();
    }
}
