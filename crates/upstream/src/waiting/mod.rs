//! Requests that wait for a server: connects a group with the [limit](crate::limit).
//!
//! A request waits only if every server that it may use is full, and then for all of them, backups
//! included, because backups are used while every primary is full.

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
use crate::pool::{self, Handoff};
use crate::server::Server;

pub use limit::GroupLimit;
pub(crate) use limit::{LimitRule, LimitZone, LimitedServer};

/// A request that waits. Dropping it leaves the queue.
pub struct WaitingRequest {
    waiter: Waiter<Handoff>,
    group: Arc<Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRefused {
    /// The queue has reached its limit.
    Full,
    /// No server that it may use has a queue.
    NoServer,
    /// The group's servers have changed since all were busy: choose again.
    Changed,
}

#[derive(Debug)]
pub enum Waited {
    Server(Lease),
    /// There is no server left to wait for: choose again.
    None,
}

impl Group {
    /// Joins the queue for one of the servers that were all busy.
    pub fn wait(
        self: &Arc<Self>,
        attempt: &mut Attempt,
        now_ms: u64,
    ) -> Result<WaitingRequest, WaitRefused> {
        let limit = self.limit().ok_or(WaitRefused::NoServer)?;
        let (mut servers, mut tried) = (Vec::new(), Vec::new());
        let peers = self.lock();
        let has_changed = attempt.is_outdated(&peers);
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
        let refused = if has_changed { WaitRefused::Changed } else { WaitRefused::NoServer };
        let queue = servers.first().ok_or(refused)?.queue().clone();
        let (group, backlog) = (limit.group, limit.backlog);
        let worker = (!self.pool().has_any()).then(pool::worker);
        let request =
            JoinRequest { servers: &servers, tried: &tried, group, backlog, worker, now_ms };
        let waiter = queue.join(request).map_err(|_| WaitRefused::Full)?;
        Ok(WaitingRequest { waiter, group: self.clone() })
    }

    /// Turns a granted slot into a request in progress.
    fn take_grant(&self, grant: Grant<Handoff>, attempt: &mut Attempt, now_ms: u64) -> Waited {
        let peers = self.lock();
        attempt.resume(&peers);
        let meant = |(at, server): &(usize, &Arc<Server>)| {
            let limited = server.limited.as_ref();
            limited.is_some_and(|own| Arc::ptr_eq(&own.slots, grant.slot.slots()))
                && (peers.is_single() || !attempt.has_tried(*at))
                && is_awaited(&peers, server, now_ms)
        };
        // The server may be gone or have failed just now. Its slot then goes to the next request.
        let Some((at, server)) = peers.iter().enumerate().find(meant) else { return Waited::None };
        let single = peers.is_single();
        let lease = Lease::granted(server, grant.slot, single, &*self.balance, now_ms);
        server.state.chosen(server.terms.failure_policy, now_ms);
        attempt.given(at);
        drop(peers);
        if let Some(handoff) = grant.handoff {
            handoff.keep(self.pool());
        }
        Waited::Server(lease)
    }
}

/// Whether requests may wait for a server. The only server of a group is used even after failures.
fn is_awaited(peers: &Peers, server: &Server, now_ms: u64) -> bool {
    match peers.is_single() {
        // Requests that wait have chosen it; at a draining server, those are bound to it.
        true => server.is_usable(true),
        false => server.is_live(now_ms, false),
    }
}

impl WaitingRequest {
    /// Its position when it joined: 1 is next, 0 need not wait.
    pub fn position(&self) -> u32 {
        self.waiter.position()
    }

    /// The result, once.
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

    /// Leaves because its time is over. A server granted at the last moment is returned.
    pub fn give_up(self, attempt: &mut Attempt, now_ms: u64) -> Option<Lease> {
        let Self { waiter, group } = self;
        match group.take_grant(waiter.give_up(now_ms)?, attempt, now_ms) {
            Waited::Server(lease) => Some(lease),
            Waited::None => None,
        }
    }
}
