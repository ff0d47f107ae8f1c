//! Fills: who fetches a key now, and who waits for that.
//!
//! A key has at most one [`Fill`]. Whoever holds it fetches the reply; its drop, however the
//! fetching ended, wakes all who wait. They look again, and one of them may be the next to fetch.
//! If the fetching failed, they are told of the [`FillFailure`], so that a server in trouble need
//! not be asked once for each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::key::KeyDigest;
use crate::progress::{FillProgress, ProgressWriter};
use crate::zone::CacheZone;

/// The right to fetch a key.
#[derive(Debug)]
pub struct Fill {
    zone: Arc<CacheZone>,
    digest: KeyDigest,
    ticket: u64,
}

/// A failure that has left nothing to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillFailure {
    /// The status that the client of the one who fetched is given.
    pub status: u16,
    /// Why it failed, in bits that the caller knows.
    pub reasons: u16,
    /// Whether there was no reply, or only a part of one.
    pub is_error: bool,
    /// Whether a server was sent the request, so that the request may be to blame.
    pub was_sent: bool,
}

/// The failures in a row of fills of a key that others waited for. Whoever has waited and fetches
/// next continues it.
#[derive(Debug, Default)]
pub struct FillFailures(Mutex<(u32, Option<FillFailure>)>);

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillEnd {
    /// The fill has ended, with something to find or without.
    Ended,
    /// It has failed, as so many in a row.
    Failed(FillFailure, u32),
    /// The fill goes on, but is so old that another may begin.
    TooOld,
}

/// Waits for a fill to end. Its drop gives up waiting.
#[derive(Debug)]
pub struct FillWaiter {
    zone: Arc<CacheZone>,
    digest: KeyDigest,
    ticket: u64,
    waits_for: Option<WaitedFill>,
    /// The reply that may be followed.
    progress: Option<Arc<FillProgress>>,
}

/// The fill that is waited for.
#[derive(Debug)]
struct WaitedFill {
    serial: u64,
    failures: Arc<FillFailures>,
    /// How many there were before.
    failed_before: u32,
}

/// The fills of one shard that are in progress.
#[derive(Debug, Default)]
pub(crate) struct PendingFills(HashMap<KeyDigest, PendingFill>);

#[derive(Debug)]
struct PendingFill {
    /// Of whoever fetches: the last one, if the first has taken too long.
    ticket: u64,
    /// That of the first.
    serial: u64,
    /// From when on another may fetch as well.
    until_ms: u64,
    waiting: HashMap<u64, Waker>,
    failures: Arc<FillFailures>,
    /// The reply as far as there is one, if it may be followed.
    progress: Option<Arc<FillProgress>>,
}

impl FillFailures {
    fn add(&self, failure: FillFailure) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (known.0 + 1, Some(failure));
    }

    /// How many there are, and the last one.
    fn last(&self) -> (u32, Option<FillFailure>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingFills {
    /// Begins a fill unless there is one that is not too old.
    pub(crate) fn begin(
        &mut self,
        digest: KeyDigest,
        ticket: u64,
        now_ms: u64,
        age_ms: u64,
        failures: Option<Arc<FillFailures>>,
    ) -> bool {
        let until_ms = now_ms.saturating_add(age_ms);
        match self.0.get_mut(&digest) {
            Some(pending) if now_ms < pending.until_ms => return false,
            Some(pending) => (pending.ticket, pending.until_ms) = (ticket, until_ms),
            None => {
                let (waiting, failures) = (HashMap::new(), failures.unwrap_or_default());
                let serial = ticket;
                let pending =
                    PendingFill { ticket, serial, until_ms, waiting, failures, progress: None };
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

    /// Shows the reply to those who wait, and to those who come.
    pub fn publish(&self, writer: &ProgressWriter) {
        let mut shard = self.zone.shard(&self.digest);
        let pending = shard.fills.0.get_mut(&self.digest);
        let Some(pending) = pending.filter(|pending| pending.ticket == self.ticket) else { return };
        pending.progress = Some(writer.progress().clone());
        let waiting = std::mem::take(&mut pending.waiting);
        drop(shard);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Ends it with a reply that cannot be stored, which is remembered.
    pub fn refuse(self, until_s: i64, now_s: i64) {
        self.zone.remember_uncacheable(&self.digest, until_s, now_s);
    }

    /// Ends it, and tells those who wait that there is nothing to find.
    pub fn fail(self, failure: FillFailure) {
        let shard = self.zone.shard(&self.digest);
        let pending = shard.fills.0.get(&self.digest);
        if let Some(pending) = pending.filter(|pending| pending.ticket == self.ticket) {
            pending.failures.add(failure);
        }
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
        Self { zone, digest, ticket, waits_for: None, progress: None }
    }

    /// Ready once the fill has ended that was there at the first call, or is too old. `until_ms` is
    /// set to when that is.
    pub fn poll(&mut self, cx: &mut Context<'_>, now_ms: u64, until_ms: &mut u64) -> Poll<FillEnd> {
        let mut shard = self.zone.shard(&self.digest);
        let pending = shard.fills.0.get_mut(&self.digest).filter(|pending| {
            self.waits_for.as_ref().is_none_or(|waited| waited.serial == pending.serial)
        });
        let Some(pending) = pending else { return Poll::Ready(self.end()) };
        if now_ms >= pending.until_ms {
            return Poll::Ready(FillEnd::TooOld);
        }
        self.waits_for.get_or_insert_with(|| WaitedFill {
            serial: pending.serial,
            failures: pending.failures.clone(),
            failed_before: pending.failures.last().0,
        });
        self.progress.clone_from(&pending.progress);
        *until_ms = pending.until_ms;
        let waker = pending.waiting.entry(self.ticket).or_insert_with(|| cx.waker().clone());
        waker.clone_from(cx.waker());
        Poll::Pending
    }

    fn end(&self) -> FillEnd {
        let Some(waited) = &self.waits_for else { return FillEnd::Ended };
        match waited.failures.last() {
            (count, Some(failure)) if count > waited.failed_before => {
                FillEnd::Failed(failure, count)
            }
            _ => FillEnd::Ended,
        }
    }

    /// The reply that is being fetched, if the last call of [`FillWaiter::poll`] has found one.
    pub fn progress(&self) -> Option<&Arc<FillProgress>> {
        self.progress.as_ref()
    }

    /// The failures so far, for whoever fetches next.
    pub fn failures(self) -> Option<Arc<FillFailures>> {
        self.waits_for.as_ref().map(|waited| waited.failures.clone())
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
