//! Idle connections that serve one request at a time.

use std::task::Context;

use net::{Stream, clock};

use super::key::{ListsByKey, PoolKey};
use super::surplus::Surplus;
use crate::settings::KeepaliveSettings;

pub struct PooledConnection {
    pub stream: Stream,
    /// Requests sent so far.
    pub requests: u64,
    pub(super) opened_ms: u64,
}

impl PooledConnection {
    pub fn new(stream: Stream) -> Self {
        Self { stream, requests: 0, opened_ms: clock::now_ms() }
    }

    /// How long ago it was opened.
    pub fn age_ms(&self) -> u64 {
        clock::now_ms().saturating_sub(self.opened_ms)
    }

    pub(super) fn may_go_on(&self, rules: &KeepaliveSettings, now_ms: u64) -> bool {
        rules.allow_another(self.requests, now_ms.saturating_sub(self.opened_ms))
    }
}

/// The idle connections of one group and worker, the youngest last in the list of its key.
#[derive(Default)]
pub(super) struct ExclusiveConnections {
    by_key: ListsByKey<IdleConnection>,
    /// In all lists.
    count: usize,
}

struct IdleConnection {
    connection: PooledConnection,
    since_ms: u64,
    until_ms: u64,
}

impl ExclusiveConnections {
    pub fn count(&self) -> usize {
        self.count
    }

    /// The youngest with that key.
    pub fn take(&mut self, key: &PoolKey, now_ms: u64) -> Option<PooledConnection> {
        let list = self.by_key.find(key)?;
        loop {
            let mut idle = list.pop()?;
            self.count -= 1;
            // Expired connections are only closed once a round.
            if idle.until_ms > now_ms && !idle.connection.stream.is_disturbed() {
                return Some(idle.connection);
            }
        }
    }

    #[inline]
    pub fn add(
        &mut self,
        key: PoolKey,
        connection: PooledConnection,
        since_ms: u64,
        until_ms: u64,
    ) {
        self.count += 1;
        self.by_key.push(key, IdleConnection { connection, since_ms, until_ms });
    }

    /// Closes connections that are disturbed or expired.
    pub fn tidy(&mut self, cx: &mut Context<'_>, now_ms: u64) {
        self.retain_mut(|idle| {
            idle.until_ms > now_ms && idle.connection.stream.poll_disturbed(cx).is_pending()
        });
    }

    /// The times since when connections are idle, if before `before_ms`.
    pub fn since_ms(&self, before_ms: u64) -> impl Iterator<Item = u64> {
        let old = move |list: &Vec<IdleConnection>| {
            list.partition_point(|idle| idle.since_ms < before_ms)
        };
        self.by_key.all().flat_map(move |list| list[..old(list)].iter().map(|idle| idle.since_ms))
    }

    pub fn close(&mut self, surplus: &mut Surplus) {
        self.retain_mut(|idle| !surplus.takes(idle.since_ms));
    }

    fn retain_mut(&mut self, keep: impl FnMut(&mut IdleConnection) -> bool) {
        self.by_key.retain_mut(keep);
        self.count = self.by_key.all().map(Vec::len).sum();
    }
}
