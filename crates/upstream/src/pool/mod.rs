//! Connections to servers: one pool per worker and group, without a lock. It holds idle connections
//! that serve one request at a time, and [connections that requests share](SharedConnection), idle
//! or busy.
//!
//! `keepalive N` limits those that have been idle for over [`YOUNG_MS`]. Younger ones above it
//! stay: under load they are needed again at once, and opening new ones is the main cost of a pool
//! that is too small.

mod idle;
mod key;
mod opening;
mod shared;
mod surplus;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use metrics::Metric;
use net::{Detached, Stream, Timer, clock};

use self::idle::ExclusiveConnections;
use self::opening::Openings;
use self::shared::SharedConnections;
use self::surplus::Surplus;
use crate::counters::GroupCounts;
use crate::name::GroupName;
use crate::settings::KeepaliveSettings;

pub use self::idle::PooledConnection;
pub use self::key::{CertificateNames, PoolKey, PoolOrigin, PoolProtocol, SecuredAs};
pub use self::opening::{OpeningWait, SharedOpening};
pub use self::shared::SharedConnection;

/// Idle for longer than this, a connection counts against `keepalive N`.
const YOUNG_MS: u64 = 1000;
/// How often connections are checked.
const ROUND_MS: u64 = 500;
/// Idle connections of one worker and group, whatever their age.
const IDLE_MAX: usize = 16 * 1024;
/// Shared connections of one worker and group.
const SHARED_MAX: usize = 16 * 1024;

/// The connections of a group, on every worker.
#[derive(Clone, Copy, Debug)]
pub struct GroupPool {
    number: u32,
    settings: KeepaliveSettings,
}

/// An idle connection on its way to another worker.
pub(crate) struct Handoff {
    stream: Detached,
    key: PoolKey,
    requests: u64,
    opened_ms: u64,
}

impl Handoff {
    /// Takes a connection out of this worker, if it may serve another request.
    pub fn of(pool: &GroupPool, key: PoolKey, connection: PooledConnection) -> Option<Self> {
        if !connection.may_go_on(&pool.settings, clock::now_ms())
            || connection.stream.may_have_unread()
        {
            return None;
        }
        let PooledConnection { stream, requests, opened_ms } = connection;
        Some(Self { stream: stream.detach(), key, requests, opened_ms })
    }

    /// Makes it one of this worker's idle connections.
    pub fn keep(self, pool: &GroupPool) {
        let Self { stream, key, requests, opened_ms } = self;
        let mut stream = Stream::attach(stream);
        // This worker was not notified of what arrived on the way.
        if stream.is_disturbed() {
            return;
        }
        // From now on it is notified when the peer closes the connection.
        if stream.poll_disturbed(&mut Context::from_waker(Waker::noop())).is_pending() {
            pool.give_back(key, PooledConnection { stream, requests, opened_ms });
        }
    }
}

/// One worker's connections of a group.
#[derive(Default)]
struct ConnectionPool {
    idle: ExclusiveConnections,
    shared: SharedConnections,
    /// Connections that will be shared.
    openings: Openings,
    old_max: usize,
    /// The group's counters, once somebody wants them.
    counters: Option<Metric<GroupCounts>>,
}

/// Numbers by the names of groups, so that a reload finds the pools of the last generation.
static NUMBERS: Mutex<BTreeMap<GroupName, u32>> = Mutex::new(BTreeMap::new());

/// The number of the groups with that name.
fn number(group: &GroupName) -> u32 {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = numbers.len() as u32 + 1;
    *numbers.entry(group.clone()).or_insert(next)
}

/// The counters of the groups with that number.
fn metric(number: u32) -> Metric<GroupCounts> {
    let numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let name = numbers.iter().find(|(_, known)| **known == number);
    Metric::named(&name.map(|(name, _)| name.metric_name()).unwrap_or_default())
}

thread_local! {
    /// By the numbers of groups.
    static POOLS: RefCell<Vec<ConnectionPool>> = const { RefCell::new(Vec::new()) };
    static IS_TIDYING: Cell<bool> = const { Cell::new(false) };
}

/// The number of this worker thread.
pub(crate) fn worker() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

/// Closes all idle connections of this worker, and its shared ones as soon as they are idle.
pub fn close_all() {
    POOLS.with_borrow_mut(|pools| {
        pools.iter().for_each(|pool| pool.shared.close_all());
        pools.clear();
    });
}

impl GroupPool {
    /// The pool of the groups with that name.
    pub(crate) fn of(group: &GroupName, settings: KeepaliveSettings) -> Self {
        Self { number: number(group), settings }
    }

    /// No pool: connections are closed after use.
    pub(crate) const NONE: Self = Self { number: 0, settings: KeepaliveSettings::NONE };

    pub fn settings(&self) -> &KeepaliveSettings {
        &self.settings
    }

    /// Unique to the name of the group, for as long as the process lives.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The youngest idle connection with that key.
    pub fn take(&self, key: &PoolKey) -> Option<PooledConnection> {
        if self.settings.connections == 0 {
            return None;
        }
        let now_ms = clock::now_ms();
        POOLS.with_borrow_mut(|pools| {
            let pool = pools.get_mut(self.number as usize)?;
            let taken = pool.idle.take(key, now_ms);
            pool.count(self.number);
            taken
        })
    }

    /// A handle of the connection of that key with the most free streams; `None`: the caller opens
    /// another connection. The stream must be opened before other tasks run: only then do the pool
    /// and the connection know of it.
    pub fn take_shared<C: SharedConnection + Clone>(&self, key: &PoolKey) -> Option<C> {
        if self.settings.connections == 0 {
            return None;
        }
        let now_ms = clock::now_ms();
        POOLS.with_borrow_mut(|pools| {
            pools.get_mut(self.number as usize)?.shared.take(key, &self.settings, now_ms)
        })
    }

    /// Shares a new connection, whose first stream is open, with other requests. If the settings
    /// forbid that, it is closed after this stream.
    pub fn keep_shared(&self, key: PoolKey, connection: impl SharedConnection) {
        if !self.settings.allow_another(1, 0) {
            return connection.close_when_idle();
        }
        let now_ms = clock::now_ms();
        POOLS.with_borrow_mut(|pools| {
            let pool = self.pool_in(pools);
            if pool.shared.count() < SHARED_MAX {
                pool.shared.add(key, Box::new(connection), &self.settings, now_ms);
            } else {
                connection.close_when_idle();
            }
        });
        begin_to_tidy();
    }

    /// Announces a connection that this request opens and others may share; `None`: the settings
    /// forbid that.
    pub fn begin_opening(&self, key: &PoolKey) -> Option<SharedOpening> {
        if !self.settings.allow_another(1, 0) {
            return None;
        }
        let number = self.number;
        POOLS.with_borrow_mut(|pools| Some(self.pool_in(pools).openings.begin(number, key.clone())))
    }

    /// Waits for a connection with that key that another request opens; `None` if there is none, or
    /// enough requests wait for it.
    pub fn join_opening(&self, key: &PoolKey) -> Option<OpeningWait> {
        POOLS.with_borrow(|pools| pools.get(self.number as usize)?.openings.join(key))
    }

    /// Whether a request of the group that waits on this worker does not need a connection of
    /// another worker.
    pub(crate) fn has_any(&self) -> bool {
        let pool = |pools: &Vec<ConnectionPool>| {
            pools.get(self.number as usize).is_some_and(|pool| !pool.is_empty())
        };
        POOLS.with_borrow(pool)
    }

    /// Keeps a connection for the next request, if the settings allow it.
    pub(crate) fn give_back(&self, key: PoolKey, connection: PooledConnection) {
        let now_ms = clock::now_ms();
        if !connection.may_go_on(&self.settings, now_ms) {
            return;
        }
        POOLS.with_borrow_mut(|pools| {
            let pool = self.pool_in(pools);
            if pool.idle.count() < IDLE_MAX {
                let until_ms = now_ms.saturating_add(self.settings.timeout_ms);
                pool.idle.add(key, connection, now_ms, until_ms);
            }
            pool.count(self.number);
        });
        begin_to_tidy();
    }

    /// This worker's pool, which is about to get another connection.
    #[inline]
    fn pool_in<'p>(&self, pools: &'p mut Vec<ConnectionPool>) -> &'p mut ConnectionPool {
        let at = self.number as usize;
        if pools.len() <= at {
            pools.resize_with(at + 1, ConnectionPool::default);
        }
        let pool = &mut pools[at];
        pool.old_max = usize::try_from(self.settings.connections).unwrap_or(usize::MAX);
        pool
    }
}

impl Drop for SharedOpening {
    fn drop(&mut self) {
        POOLS.with_borrow_mut(|pools| {
            if let Some(pool) = pools.get_mut(self.number as usize) {
                pool.openings.end(self);
            }
        });
        self.wake();
    }
}

impl ConnectionPool {
    fn is_empty(&self) -> bool {
        self.idle.count() == 0 && self.shared.is_empty()
    }

    /// Shows how many connections are idle, if anybody wants to know.
    #[inline]
    fn count(&mut self, number: u32) {
        if metrics::are_wanted() {
            let counters = self.counters.get_or_insert_with(|| metric(number));
            counters.own().idle().set(self.idle.count() as u64);
        }
    }

    /// Closes connections that are disturbed, expired, or old and too many.
    fn tidy(&mut self, cx: &mut Context<'_>, now_ms: u64) {
        self.idle.tidy(cx, now_ms);
        self.shared.tidy(now_ms);
        let old_ms = now_ms.saturating_sub(YOUNG_MS);
        let since_ms = self.idle.since_ms(old_ms).chain(self.shared.since_ms(old_ms));
        if let Some(mut surplus) = Surplus::of(since_ms.collect(), self.old_max) {
            self.idle.close(&mut surplus);
            self.shared.close(&mut surplus);
        }
    }
}

#[inline]
fn begin_to_tidy() {
    if !IS_TIDYING.replace(true) {
        net::spawn(tidy());
    }
}

/// Checks connections as long as there are any.
async fn tidy() {
    let timer = Timer::new();
    timer.set(ROUND_MS);
    poll_fn(|cx| {
        let empty = POOLS.with_borrow_mut(|pools| {
            let now_ms = clock::now_ms();
            for (number, pool) in pools.iter_mut().enumerate().filter(|(_, pool)| !pool.is_empty())
            {
                pool.tidy(cx, now_ms);
                pool.count(number as u32);
            }
            pools.iter().all(ConnectionPool::is_empty)
        });
        if empty {
            return Poll::Ready(());
        }
        ready!(timer.poll(cx));
        timer.set(ROUND_MS);
        timer.poll(cx)
    })
    .await;
    IS_TIDYING.set(false);
}
