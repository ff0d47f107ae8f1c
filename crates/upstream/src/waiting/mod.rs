//! Requests that wait for a server: what joins a group to the [limit](crate::limit).
//!
//! A request waits only when every server that it may use is full, and then for all of them.
//! Backups are among them, since they are used while every primary is full.

mod limit;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::attempt::Attempt;
use crate::group::Group;
use crate::lease::Lease;
use crate::limit::{Grant, JoinRequest, Waiter, WaiterAnswer};
use crate::peers::Peers;
use crate::pool::{Handoff, worker};
use crate::server::Server;

pub use limit::GroupLimit;
pub(crate) use limit::{LimitRule, LimitZone, LimitedServer};

/// A request that waits. Dropping it gives its place up.
pub struct WaitingRequest {
    waiter: Waiter<Handoff>,
    group: Arc<Group>,
}

/// Why a request does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRefused {
    /// As many wait as may.
    Full,
    /// There is no server that it could wait for, or none where requests wait.
    NoServer,
}

/// What waiting came to.
#[derive(Debug)]
pub enum Waited {
    /// This server.
    Server(Lease),
    /// There is none any more that it could wait for: choose again.
    None,
}

impl Group {
    /// Takes a place in the line for one of the servers that were all busy.
    pub fn wait(
        self: &Arc<Self>,
        attempt: &mut Attempt,
        now_ms: u64,
    ) -> Result<WaitingRequest, WaitRefused> {
        let limit = self.limit().ok_or(WaitRefused::NoServer)?;
        let (mut servers, mut tried) = (Vec::new(), Vec::new());
        let peers = self.lock();
        attempt.resume(&peers);
        for (at, server) in peers.iter().enumerate() {
            let Some(limited) = &server.limited else { continue };
            if attempt.has_tried(at) && !peers.is_single() {
                tried.push(limited.slots.clone());
            } else if is_awaited(&peers, server, now_ms) {
                servers.push(limited.slots.clone());
            }
        }
        drop(peers);
        let line = servers.first().ok_or(WaitRefused::NoServer)?.line().clone();
        let (group, backlog) = (limit.group, limit.backlog);
        let taker = (!self.pool().has_any()).then(worker);
        let wish = JoinRequest { servers: &servers, tried: &tried, group, backlog, taker, now_ms };
        let waiter = line.join(wish).map_err(|_| WaitRefused::Full)?;
        Ok(WaitingRequest { waiter, group: self.clone() })
    }

    /// Makes a place that was waited for a request in progress.
    fn take_grant(&self, grant: Grant<Handoff>, attempt: &mut Attempt, now_ms: u64) -> Waited {
        let peers = self.lock();
        attempt.resume(&peers);
        let meant = |(at, server): &(usize, &Arc<Server>)| {
            let limited = server.limited.as_ref();
            limited.is_some_and(|own| Arc::ptr_eq(&own.slots, grant.slot.slots()))
                && (peers.is_single() || !attempt.has_tried(*at))
                && is_awaited(&peers, server, now_ms)
        };
        // It may have gone, or failed, just now; its place then goes to whoever still waits for it.
        let Some((at, server)) = peers.iter().enumerate().find(meant) else { return Waited::None };
        let single = peers.is_single();
        let lease = Lease::granted(server, grant.slot, single, &*self.balance, now_ms);
        server.standing.chosen(server.terms.patience, now_ms);
        attempt.given(at);
        drop(peers);
        if let Some(gift) = grant.gift {
            gift.keep(self.pool());
        }
        Waited::Server(lease)
    }
}

/// Whether requests may wait for a server: as they are given it, which is whatever it did where
/// there is no other.
fn is_awaited(peers: &Peers, server: &Server, now_ms: u64) -> bool {
    match peers.is_single() {
        // Only those wait that were to have it: of a server that drains, those bound to it.
        true => server.is_usable(true),
        false => server.is_live(now_ms, false),
    }
}

impl WaitingRequest {
    /// Its place when it joined: 1 is the next to be served, 0 need not wait.
    pub fn place(&self) -> u32 {
        self.waiter.place()
    }

    /// What came of it, once.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        attempt: &mut Attempt,
        now_ms: u64,
    ) -> Poll<Waited> {
        Poll::Ready(match ready!(self.waiter.poll(cx, now_ms)) {
            WaiterAnswer::Granted(grant) => self.group.take_grant(grant, attempt, now_ms),
            WaiterAnswer::NoServer => Waited::None,
        })
    }

    /// Its time is over. A server that came in the last moment is not lost.
    pub fn give_up(self, attempt: &mut Attempt, now_ms: u64) -> Option<Lease> {
        let Self { waiter, group } = self;
        match group.take_grant(waiter.give_up(now_ms)?, attempt, now_ms) {
            Waited::Server(lease) => Some(lease),
            Waited::None => None,
        }
    }
}
