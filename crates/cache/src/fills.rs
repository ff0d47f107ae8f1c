//! Fills: who fetches a key now, and who waits for that.
//!
//! A key has at most one [`Fill`]. Whoever holds it fetches the reply; its drop, however the
//! fetching ended, wakes all who wait. They look again, and one of them may be the next to fetch.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::key::KeyDigest;
use crate::zone::CacheZone;

/// The right to fetch a key.
#[derive(Debug)]
pub struct Fill {
    zone: Arc<CacheZone>,
    digest: KeyDigest,
    ticket: u64,
}

/// Waits for a fill to end. Its drop gives up waiting.
#[derive(Debug)]
pub struct FillWaiter {
    zone: Arc<CacheZone>,
    digest: KeyDigest,
    ticket: u64,
}

/// The fills of one shard that are in progress.
#[derive(Debug, Default)]
pub(crate) struct PendingFills(HashMap<KeyDigest, PendingFill>);

#[derive(Debug)]
struct PendingFill {
    ticket: u64,
    /// From when on another may fetch as well.
    until_ms: u64,
    waiting: HashMap<u64, Waker>,
}

impl PendingFills {
    /// Begins a fill unless there is one that is not too old.
    pub(crate) fn begin(
        &mut self,
        digest: KeyDigest,
        ticket: u64,
        now_ms: u64,
        age_ms: u64,
    ) -> bool {
        let until_ms = now_ms.saturating_add(age_ms);
        match self.0.get_mut(&digest) {
            Some(pending) if now_ms < pending.until_ms => return false,
            Some(pending) => (pending.ticket, pending.until_ms) = (ticket, until_ms),
            None => {
                let pending = PendingFill { ticket, until_ms, waiting: HashMap::new() };
                self.0.insert(digest, pending);
            }
        }
        true
    }

    /// Ends a fill. Those who wait are to be woken.
    fn end(&mut self, digest: &KeyDigest, ticket: u64) -> Option<PendingFill> {
        let is_current = self.0.get(digest).is_some_and(|pending| pending.ticket == ticket);
        if is_current { self.0.remove(digest) } else { None }
    }

    pub(crate) fn is_filling(&self, digest: &KeyDigest) -> bool {
        self.0.contains_key(digest)
    }
}

impl Fill {
    /// The right to fetch, which was taken with this ticket.
    pub(crate) fn new(zone: Arc<CacheZone>, digest: KeyDigest, ticket: u64) -> Self {
        Self { zone, digest, ticket }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        let ended = self.zone.shard(&self.digest).fills.end(&self.digest, self.ticket);
        // The shard is unlocked: a waker may take a lock of its own.
        for waker in ended.into_iter().flat_map(|ended| ended.waiting.into_values()) {
            waker.wake();
        }
    }
}

impl FillWaiter {
    pub(crate) fn new(zone: Arc<CacheZone>, digest: KeyDigest, ticket: u64) -> Self {
        Self { zone, digest, ticket }
    }

    /// Ready once there is no fill, or one that is too old. `until_ms` is set to when that is.
    pub fn poll(&self, cx: &mut Context<'_>, now_ms: u64, until_ms: &mut u64) -> Poll<()> {
        let mut shard = self.zone.shard(&self.digest);
        let Some(pending) = shard.fills.0.get_mut(&self.digest) else { return Poll::Ready(()) };
        if now_ms >= pending.until_ms {
            return Poll::Ready(());
        }
        *until_ms = pending.until_ms;
        let waker = pending.waiting.entry(self.ticket).or_insert_with(|| cx.waker().clone());
        waker.clone_from(cx.waker());
        Poll::Pending
    }
}

impl Drop for FillWaiter {
    fn drop(&mut self) {
        let mut shard = self.zone.shard(&self.digest);
        let pending = shard.fills.0.get_mut(&self.digest);
        let waker = pending.and_then(|pending| pending.waiting.remove(&self.ticket));
        drop(shard);
        drop(waker);
    }
}
