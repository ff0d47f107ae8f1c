//! Idle connections to servers: one pool per worker and group, without a lock.
//!
//! `keepalive N` limits those that have been idle for over [`YOUNG_MS`]. Younger ones above it
//! stay: under load they are needed again at once, and opening new ones is what makes a pool that
//! is too small so expensive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use net::{Address, Detached, Stream, Timer, clock};

use crate::name::GroupName;
use crate::settings::KeepaliveSettings;

/// Idle for longer than this, a connection counts against `keepalive N`.
const YOUNG_MS: u64 = 1000;
/// How often idle connections are checked.
const ROUND_MS: u64 = 500;
/// Idle connections of one worker and group, whatever their age.
const IDLE_MAX: usize = 16 * 1024;

/// The idle connections of a group, on every worker.
#[derive(Clone, Copy, Debug)]
pub struct GroupPool {
    number: u32,
    settings: KeepaliveSettings,
}

/// A connection to a server.
pub struct PooledConnection {
    /// The socket.
    pub stream: Stream,
    /// Requests sent so far.
    pub requests: u64,
    opened_ms: u64,
}

/// Connections with different keys are not exchanged for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolKey {
    /// The server.
    pub to: Address,
    /// How and for whom it was made; `None` for a plain one.
    pub origin: Option<Arc<PoolOrigin>>,
}

/// How and for whom a connection was made.
#[derive(Debug, PartialEq, Eq)]
pub struct PoolOrigin {
    /// The local address that was requested.
    pub from: Option<SocketAddr>,
    /// How it is secured.
    pub secured: Option<SecuredAs>,
    /// The location's number, if locations have connections of their own.
    pub location: Option<u64>,
}

/// How a connection is secured. A connection serves only requests that would be secured alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecuredAs {
    /// The number of the TLS settings.
    pub settings: u64,
    /// The server's name.
    pub name: Arc<[u8]>,
    /// This side's certificate, if it depends on the request.
    pub certificate: Option<CertificateNames>,
}

/// The names of the files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNames {
    /// The certificate's.
    pub certificate: Arc<[u8]>,
    /// The key's.
    pub key: Arc<[u8]>,
}

impl PooledConnection {
    /// A new one.
    pub fn new(stream: Stream) -> Self {
        Self { stream, requests: 0, opened_ms: clock::now_ms() }
    }

    /// How long ago it was opened.
    pub fn age_ms(&self) -> u64 {
        clock::now_ms().saturating_sub(self.opened_ms)
    }

    fn may_go_on(&self, rules: &KeepaliveSettings, now_ms: u64) -> bool {
        rules.connections > 0
            && self.requests < rules.requests
            && now_ms.saturating_sub(self.opened_ms) <= rules.time_ms
    }
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

/// Idle connections, the youngest last.
#[derive(Default)]
struct ConnectionPool {
    idle: Vec<IdleConnection>,
    /// How many old ones may stay.
    old_max: usize,
}

struct IdleConnection {
    key: PoolKey,
    connection: PooledConnection,
    since_ms: u64,
    until_ms: u64,
}

/// Numbers by the names of groups, so that a reload finds the pools of the last generation.
static NUMBERS: Mutex<BTreeMap<GroupName, u32>> = Mutex::new(BTreeMap::new());

/// The number of the groups with that name.
fn number(group: &GroupName) -> u32 {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = numbers.len() as u32 + 1;
    *numbers.entry(group.clone()).or_insert(next)
}

thread_local! {
    /// By the numbers of groups.
    static POOLS: RefCell<Vec<ConnectionPool>> = const { RefCell::new(Vec::new()) };
    static IS_TIDYING: Cell<bool> = const { Cell::new(false) };
}

/// Which of all workers this thread is.
pub(crate) fn worker() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

/// Closes all idle connections of this worker.
pub fn close_all() {
    POOLS.with_borrow_mut(Vec::clear);
}

impl GroupPool {
    /// The pool of the groups with that name.
    pub(crate) fn of(group: &GroupName, settings: KeepaliveSettings) -> Self {
        Self { number: number(group), settings }
    }

    /// No pool: connections are closed.
    pub(crate) const NONE: Self = Self { number: 0, settings: KeepaliveSettings::NONE };

    /// When connections are kept.
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
        POOLS.with_borrow_mut(|pools| pools.get_mut(self.number as usize)?.take(key, now_ms))
    }

    /// Whether this worker has idle connections of the group.
    pub(crate) fn has_any(&self) -> bool {
        let pool = |pools: &Vec<ConnectionPool>| {
            pools.get(self.number as usize).is_some_and(ConnectionPool::has_any)
        };
        POOLS.with_borrow(pool)
    }

    /// Keeps a connection for the next request, if the settings let it.
    pub(crate) fn give_back(&self, key: PoolKey, connection: PooledConnection) {
        let now_ms = clock::now_ms();
        if !connection.may_go_on(&self.settings, now_ms) {
            return;
        }
        POOLS.with_borrow_mut(|pools| {
            let at = self.number as usize;
            if pools.len() <= at {
                pools.resize_with(at + 1, ConnectionPool::default);
            }
            let pool = &mut pools[at];
            pool.old_max = usize::try_from(self.settings.connections).unwrap_or(usize::MAX);
            if pool.idle.len() < IDLE_MAX {
                let until_ms = now_ms.saturating_add(self.settings.timeout_ms);
                pool.idle.push(IdleConnection { key, connection, since_ms: now_ms, until_ms });
            }
        });
        if !IS_TIDYING.replace(true) {
            net::spawn(tidy());
        }
    }
}

impl ConnectionPool {
    fn has_any(&self) -> bool {
        !self.idle.is_empty()
    }

    fn take(&mut self, key: &PoolKey, now_ms: u64) -> Option<PooledConnection> {
        loop {
            let at = self.idle.iter().rposition(|idle| idle.key == *key)?;
            let mut idle = self.idle.remove(at);
            // Expired connections are only closed once a round.
            if idle.until_ms > now_ms && !idle.connection.stream.is_disturbed() {
                return Some(idle.connection);
            }
        }
    }

    /// Closes connections that are disturbed, expired, or old and too many.
    fn tidy(&mut self, cx: &mut Context<'_>, now_ms: u64) {
        self.idle.retain_mut(|idle| {
            idle.until_ms > now_ms && idle.connection.stream.poll_disturbed(cx).is_pending()
        });
        let young_since_ms = now_ms.saturating_sub(YOUNG_MS);
        let old = self.idle.partition_point(|idle| idle.since_ms < young_since_ms);
        // The oldest go first.
        self.idle.drain(..old.saturating_sub(self.old_max));
    }
}

/// Checks idle connections as long as there are any.
async fn tidy() {
    let timer = Timer::new();
    timer.set(ROUND_MS);
    poll_fn(|cx| {
        let empty = POOLS.with_borrow_mut(|pools| {
            let now_ms = clock::now_ms();
            pools.iter_mut().for_each(|pool| pool.tidy(cx, now_ms));
            pools.iter().all(|pool| pool.idle.is_empty())
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::testing::group;

    fn is_kept(meanwhile: impl FnOnce(UnixStream)) -> bool {
        let group = group("server 10.0.0.1; keepalive 2;");
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let key = PoolKey { to: group.servers()[0].address().clone(), origin: None };
        let opened_ms = clock::now_ms();
        let stream = OwnedFd::from(near).into();
        let handoff = Handoff { stream, key: key.clone(), requests: 1, opened_ms };
        meanwhile(far);
        handoff.keep(group.pool());
        group.pool().take(&key).is_some()
    }

    #[test]
    fn an_idle_connection_is_closed_after_its_time() {
        let group = group("server 10.0.0.1; keepalive 2; keepalive_timeout 3s;");
        let key = PoolKey { to: group.servers()[0].address().clone(), origin: None };
        net::run(async {
            net::testing::stop_clock();
            for (idle_ms, is_open) in [(2900, true), (3600, false)] {
                let (near, mut far) = UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                far.set_nonblocking(true).unwrap();
                let stream = Stream::new(OwnedFd::from(near));
                group.pool().give_back(key.clone(), PooledConnection::new(stream));
                net::testing::advance(idle_ms).await;
                let read = far.read(&mut [0]);
                assert_eq!(read.is_err(), is_open, "{idle_ms}: {read:?}");
                assert_eq!(group.pool().take(&key).is_some(), is_open, "{idle_ms}");
            }
        })
        .unwrap();
    }

    #[test]
    fn what_one_who_is_waiting_is_given_is_looked_at_first() {
        net::run(async {
            let mut open = Vec::new();
            assert!(is_kept(|far| open.push(far)));
            assert!(!is_kept(drop), "it was closed");
            assert!(!is_kept(|mut far| {
                far.write_all(b"x").unwrap();
                open.push(far);
            }));
        })
        .unwrap();
    }
}
