//! Connections to servers that wait for another request: one pool per worker and group, no lock.
//!
//! `keepalive N` bounds those that have been idle for over [`YOUNG_MS`]. Younger ones above it
//! stay: under load they are needed again at once, and opening them anew is what makes a pool that
//! is too small so expensive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use net::{Address, Detached, Stream, Timer, clock};

use crate::memory::GroupName;
use crate::{Group, KeepaliveSettings};

/// Idle for longer than this, a connection counts against `keepalive N`.
const YOUNG_MS: u64 = 1000;
/// How often idle connections are looked at.
const ROUND_MS: u64 = 500;
/// Idle connections of one worker and group, whatever their age.
const IDLE_MAX: usize = 16 * 1024;

/// A connection to a server.
pub struct PooledConnection {
    /// The socket.
    pub stream: Stream,
    /// Requests sent so far.
    pub requests: u64,
    opened_ms: u64,
}

/// What connections are kept apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolKey {
    /// The server.
    pub to: Address,
    /// The local address that was asked for.
    pub from: Option<SocketAddr>,
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
    pub fn of(group: &Group, key: PoolKey, connection: PooledConnection) -> Option<Self> {
        if !connection.may_go_on(group.keepalive(), clock::now_ms())
            || connection.stream.may_have_unread()
        {
            return None;
        }
        let PooledConnection { stream, requests, opened_ms } = connection;
        Some(Self { stream: stream.detach(), key, requests, opened_ms })
    }

    /// Makes it one of this worker's idle connections.
    pub fn keep(self, group: &Group) {
        let Self { stream, key, requests, opened_ms } = self;
        let mut stream = Stream::attach(stream);
        // What came on the way nobody has told this worker.
        if stream.is_disturbed() {
            return;
        }
        // From now on it is told when the other end closes it.
        if stream.poll_disturbed(&mut Context::from_waker(Waker::noop())).is_pending() {
            give_back(group, key, PooledConnection { stream, requests, opened_ms });
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

/// Numbers by the names of groups: a reload finds the pools of the generation before.
static NUMBERS: Mutex<BTreeMap<GroupName, u32>> = Mutex::new(BTreeMap::new());

/// The number of the groups with that name.
pub(crate) fn number(group: &GroupName) -> u32 {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = numbers.len() as u32 + 1;
    *numbers.entry(group.clone()).or_insert(next)
}

thread_local! {
    /// By the numbers of groups.
    static POOLS: RefCell<Vec<ConnectionPool>> = const { RefCell::new(Vec::new()) };
    static JANITOR: Cell<bool> = const { Cell::new(false) };
}

/// The youngest idle connection of a group with that key.
pub fn take(group: &Group, key: &PoolKey) -> Option<PooledConnection> {
    if group.keepalive().connections == 0 {
        return None;
    }
    POOLS.with_borrow_mut(|pools| pools.get_mut(group.number as usize)?.take(key, clock::now_ms()))
}

/// Whether this worker has idle connections of a group.
pub(crate) fn has_any(group: &Group) -> bool {
    let pool = |pools: &Vec<ConnectionPool>| {
        pools.get(group.number as usize).is_some_and(ConnectionPool::has_any)
    };
    POOLS.with_borrow(pool)
}

/// Keeps a connection for the next request, if the rules let it.
pub fn give_back(group: &Group, key: PoolKey, connection: PooledConnection) {
    let rules: &KeepaliveSettings = group.keepalive();
    let now_ms = clock::now_ms();
    if !connection.may_go_on(rules, now_ms) {
        return;
    }
    POOLS.with_borrow_mut(|pools| {
        let at = group.number as usize;
        if pools.len() <= at {
            pools.resize_with(at + 1, ConnectionPool::default);
        }
        let pool = &mut pools[at];
        pool.old_max = usize::try_from(rules.connections).unwrap_or(usize::MAX);
        if pool.idle.len() < IDLE_MAX {
            let until_ms = now_ms.saturating_add(rules.timeout_ms);
            pool.idle.push(IdleConnection { key, connection, since_ms: now_ms, until_ms });
        }
    });
    if !JANITOR.replace(true) {
        net::spawn(tidy());
    }
}

/// Closes all idle connections of this worker.
pub fn close_all() {
    POOLS.with_borrow_mut(Vec::clear);
}

impl ConnectionPool {
    fn has_any(&self) -> bool {
        !self.idle.is_empty()
    }

    fn take(&mut self, key: &PoolKey, now_ms: u64) -> Option<PooledConnection> {
        loop {
            let at = self.idle.iter().rposition(|idle| idle.key == *key)?;
            let mut idle = self.idle.remove(at);
            // Those whose time is over are closed once a round only.
            if idle.until_ms > now_ms && !idle.connection.stream.is_disturbed() {
                return Some(idle.connection);
            }
        }
    }

    /// Closes those that are disturbed, out of time, or old and too many.
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

/// Looks after idle connections as long as there are some.
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
    JANITOR.set(false);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::testing::group;

    fn is_kept(meanwhile: impl FnOnce(UnixStream)) -> bool {
        let group = group("server 10.0.0.1; keepalive 2;");
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let key = PoolKey { to: group.servers()[0].address().clone(), from: None };
        let opened_ms = clock::now_ms();
        let stream = OwnedFd::from(near).into();
        let gift = Handoff { stream, key: key.clone(), requests: 1, opened_ms };
        meanwhile(far);
        gift.keep(&group);
        take(&group, &key).is_some()
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
