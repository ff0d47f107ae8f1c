//! Connections on which several requests travel at once.
//!
//! The pool has a handle of each, busy or idle, and gives copies to requests. It neither opens nor
//! ends streams: a connection that may have no more streams is closed after its last.

use std::any::Any;

use super::key::{ListsByKey, PoolKey};
use super::surplus::Surplus;
use crate::settings::KeepaliveSettings;

/// A handle of a connection with streams, one per request.
///
/// These methods, and the drop of a handle, must not call a pool: it is borrowed meanwhile.
pub trait SharedConnection: Any {
    /// How many more streams may be opened now.
    fn free_streams(&self) -> usize;
    /// Whether no more streams can ever be opened.
    fn is_over(&self) -> bool;
    /// When the last stream ended, or when the connection was opened; `None`: there are streams.
    fn idle_since_ms(&self) -> Option<u64>;
    /// Closes the connection as soon as it has no streams.
    fn close_when_idle(&self);
    /// Drops memory that is not needed without streams.
    fn rest(&self) {}
}

/// The shared connections of one group and worker, the youngest last in the list of its key.
#[derive(Default)]
pub(super) struct SharedConnections {
    by_key: ListsByKey<SharedEntry>,
}

struct SharedEntry {
    connection: Box<dyn SharedConnection>,
    /// The number of requests that were given a handle.
    requests: u64,
    opened_ms: u64,
    /// The settings of the configuration that used it last.
    rules: KeepaliveSettings,
}

impl SharedConnections {
    pub fn count(&self) -> usize {
        self.by_key.all().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.all().all(Vec::is_empty)
    }

    /// The connection with the most free streams; the youngest of several.
    pub fn take<C: SharedConnection + Clone>(
        &mut self,
        key: &PoolKey,
        rules: &KeepaliveSettings,
        now_ms: u64,
    ) -> Option<C> {
        let list = self.by_key.find(key)?;
        list.retain_mut(|entry| {
            entry.rules = *rules;
            entry.goes_on(now_ms)
        });
        let most_free = list.iter_mut().max_by_key(|entry| entry.connection.free_streams())?;
        if most_free.connection.free_streams() == 0 {
            return None;
        }
        most_free.requests += 1;
        let connection: &dyn Any = &*most_free.connection;
        Some(connection.downcast_ref::<C>().expect("a key has one type of connections").clone())
    }

    /// Adds a connection that has its first stream.
    pub fn add(
        &mut self,
        key: PoolKey,
        connection: Box<dyn SharedConnection>,
        rules: &KeepaliveSettings,
        now_ms: u64,
    ) {
        let entry = SharedEntry { connection, requests: 1, opened_ms: now_ms, rules: *rules };
        self.by_key.push(key, entry);
    }

    /// Forgets connections that are over, and those that may not have more streams.
    pub fn tidy(&mut self, now_ms: u64) {
        self.by_key.retain_mut(|entry| {
            entry.connection.rest();
            entry.goes_on(now_ms)
        });
    }

    /// The times since when connections are idle, if before `before_ms`.
    pub fn since_ms(&self, before_ms: u64) -> impl Iterator<Item = u64> {
        let since_ms = self.by_key.all().flatten().filter_map(|entry| entry.idle_since_ms());
        since_ms.filter(move |since_ms| *since_ms < before_ms)
    }

    pub fn close(&mut self, surplus: &mut Surplus) {
        self.by_key.retain_mut(|entry| {
            let is_surplus = entry.idle_since_ms().is_some_and(|since_ms| surplus.takes(since_ms));
            if is_surplus {
                entry.connection.close_when_idle();
            }
            !is_surplus
        });
    }

    /// Closes each as soon as it is idle.
    pub fn close_all(&self) {
        self.by_key.all().flatten().for_each(|entry| entry.connection.close_when_idle());
    }
}

impl SharedEntry {
    /// Whether it may have more streams. If not, it is closed when idle.
    fn goes_on(&self, now_ms: u64) -> bool {
        let Self { connection, rules, .. } = self;
        if connection.is_over() {
            return false;
        }
        let is_expired = self
            .idle_since_ms()
            .is_some_and(|since_ms| since_ms.saturating_add(rules.timeout_ms) <= now_ms);
        let age_ms = now_ms.saturating_sub(self.opened_ms);
        let goes_on = !is_expired && rules.allow_another(self.requests, age_ms);
        if !goes_on {
            connection.close_when_idle();
        }
        goes_on
    }

    fn idle_since_ms(&self) -> Option<u64> {
        self.connection.idle_since_ms()
    }
}
