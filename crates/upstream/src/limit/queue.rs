//! The queue of waiting requests: one for each zone, or for each group that has no zone.
//!
//! One mutex protects all of it; it is locked only while requests wait or join. Wakers are called,
//! and values of callers are dropped, after it is unlocked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, PoisonError, Weak};
use std::task::Waker;

use super::row::{self, TableRow};
use super::slots::{ServerSlot, ServerSlots};
use super::stats::{Counters, LimitStats, WaitEnd};
use super::sync::{Mutex, MutexGuard};
use super::table::SharedTable;
use super::waiter::Waiter;
use super::word_state::SLOTS_MAX;

/// Servers, and the requests that wait for one of them, in the order of joining.
pub struct WaitQueue<H> {
    state: Mutex<QueueState<H>>,
    servers: std::sync::Mutex<QueueServers<H>>,
    counters: Counters,
    shared: Option<ProcessLink>,
}

/// Connects the queue with the queues of other processes.
struct ProcessLink {
    table: Arc<SharedTable>,
    name: Box<[u8]>,
}

/// A request that joins the queue.
pub struct JoinRequest<'a, H> {
    /// The servers it may use, all of this queue, the preferred one first.
    pub servers: &'a [Arc<ServerSlots<H>>],
    /// Servers it has tried before; [`ServerSlots::admit`] does not offer them to it.
    pub tried: &'a [Arc<ServerSlots<H>>],
    /// The group it belongs to, as in [`ServerSlots::withdraw`] and [`ServerSlots::admit`].
    pub group: u64,
    /// How long the queue may be.
    pub backlog: Backlog,
    /// The worker that would take a connection with the slot; `None`: it has one already. See
    /// [`ServerSlots::awaits_handoff`].
    pub worker: Option<u64>,
    /// The time, by the clock of the thread that will poll.
    pub now_ms: u64,
}

/// How many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// At most this many at each server (`limit_upstream_conn backlog=`). A request counts at the
    /// first of its servers with room. 0: no request waits (`nodelay`).
    OfServer(u32),
    /// At most this many in the whole queue (`queue`).
    OfQueue(u32),
}

/// The queue has reached its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Under the mutex.
struct QueueState<H> {
    /// The next ticket. A smaller ticket is older.
    next_ticket: u64,
    waiters: BTreeMap<u64, QueueEntry<H>>,
    /// `(server, ticket)`: the requests that wait for a server, the oldest first.
    order: BTreeSet<(u64, u64)>,
}

/// The state of a ticket, until its waiter has polled the result.
pub(super) enum QueueEntry<H> {
    Waiting(QueuedRequest<H>),
    Granted { slot: ServerSlot<H>, handoff: Option<H>, home: Arc<ServerSlots<H>> },
    Stranded,
}

pub(super) struct QueuedRequest<H> {
    /// Not empty, each once.
    servers: Vec<Arc<ServerSlots<H>>>,
    tried: Vec<u64>,
    group: u64,
    worker: Option<u64>,
    /// The server in whose backlog it counts.
    pub(super) home: Arc<ServerSlots<H>>,
    waker: Option<Waker>,
}

struct QueueServers<H> {
    next_id: u64,
    by_name: HashMap<Box<[u8]>, Weak<ServerSlots<H>>>,
}

impl<H> WaitQueue<H> {
    pub fn new() -> Arc<Self> {
        Self::make(None)
    }

    /// A queue that shares its limits with the queues of this name in other processes. One process
    /// has at most one queue of a name.
    pub fn shared(name: &[u8], table: &Arc<SharedTable>) -> Arc<Self> {
        Self::make(Some(ProcessLink { table: Arc::clone(table), name: name.into() }))
    }

    fn make(shared: Option<ProcessLink>) -> Arc<Self> {
        let state = QueueState { next_ticket: 0, waiters: BTreeMap::new(), order: BTreeSet::new() };
        let servers = QueueServers { next_id: 0, by_name: HashMap::new() };
        Arc::new(Self {
            state: Mutex::new(state),
            servers: std::sync::Mutex::new(servers),
            counters: Counters::default(),
            shared,
        })
    }

    /// The row of a server in the table.
    pub(super) fn row(&self, server: &[u8], max: u32) -> Option<TableRow> {
        let ProcessLink { table, name } = self.shared.as_ref()?;
        TableRow::of(table, row::key(name, server), max)
    }

    /// Gives free slots to requests that wait: another process may have freed some. Returns whether
    /// a request still waits.
    pub fn settle_all(&self) -> bool {
        let mut wakers = Vec::new();
        let mut is_awaited = false;
        for slots in self.servers() {
            if slots.waiting() > 0 {
                let mut state = self.lock();
                wakers.extend(self.settle(&mut state, &slots, &mut None));
                is_awaited |= slots.waiting() > 0;
            }
        }
        wake(wakers);
        is_awaited
    }

    /// The server of that name (its address): the existing one, unchanged, or a new one with this
    /// maximum.
    pub fn slots(self: &Arc<Self>, name: &[u8], max: u32) -> Arc<ServerSlots<H>> {
        let mut servers = self.lock_servers();
        if let Some(known) = servers.by_name.get(name).and_then(Weak::upgrade) {
            return known;
        }
        servers.next_id += 1;
        let slots = Arc::new(ServerSlots::new(self, servers.next_id, name, max));
        servers.by_name.insert(name.into(), Arc::downgrade(&slots));
        slots
    }

    /// Whether the server of that name is still in use.
    pub fn has(&self, name: &[u8]) -> bool {
        self.lock_servers().by_name.get(name).is_some_and(|slots| slots.strong_count() > 0)
    }

    /// The servers still in use.
    pub fn servers(&self) -> Vec<Arc<ServerSlots<H>>> {
        self.lock_servers().by_name.values().filter_map(Weak::upgrade).collect()
    }

    /// The counters of the whole queue.
    pub fn stats(&self) -> LimitStats {
        let in_progress = self.servers().iter().map(|slots| u64::from(slots.in_progress())).sum();
        self.counters.read(in_progress)
    }

    /// Joins behind all requests that wait for one of these servers. If a slot is free after all,
    /// it is granted at once, and the first poll returns it.
    pub fn join(self: &Arc<Self>, request: JoinRequest<'_, H>) -> Result<Waiter<H>, QueueFull> {
        debug_assert!(request.servers.iter().all(|slots| Arc::ptr_eq(&slots.queue, self)));
        let servers = distinct(request.servers);
        let mut state = self.lock();
        // From here on slots are taken and freed under this mutex only, so "all are full" holds at
        // one moment.
        servers.iter().for_each(|slots| slots.word.enter());
        if let Some(free) = request.servers.iter().find(|slots| slots.word.claim()) {
            servers.iter().for_each(|slots| slots.word.leave());
            return Ok(Waiter::served(self, ServerSlot::new(Arc::clone(free)), request.now_ms));
        }
        let Some(home) = self.backlog_of(&request) else {
            servers.iter().for_each(|slots| slots.word.leave());
            self.reject(request.servers.first());
            return Err(QueueFull);
        };
        let position = servers.iter().map(|slots| slots.word.load().waiting()).min().unwrap_or(0);
        self.each_counter(&home, Counters::queue);
        let tried = request.tried.iter().map(|slots| slots.id).collect();
        let JoinRequest { group, worker, .. } = request;
        let waiting = QueuedRequest { servers, tried, group, worker, home, waker: None };
        let ticket = state.push(waiting);
        Ok(Waiter::queued(self, ticket, position, request.now_ms))
    }

    /// The server in whose backlog the request counts.
    fn backlog_of(&self, request: &JoinRequest<'_, H>) -> Option<Arc<ServerSlots<H>>> {
        let waiting = self.counters.waiting();
        let room = |slots: &&Arc<ServerSlots<H>>| match request.backlog {
            Backlog::OfServer(max) => slots.counters.waiting() < max.into(),
            Backlog::OfQueue(max) => waiting < max.into(),
        };
        if waiting >= SLOTS_MAX.into() {
            return None;
        }
        request.servers.iter().find(room).cloned()
    }

    fn reject(&self, preferred: Option<&Arc<ServerSlots<H>>>) {
        self.counters.reject();
        if let Some(slots) = preferred {
            slots.counters.reject();
        }
    }

    /// Frees a slot that a request may wait for.
    pub(super) fn pass_on(&self, slots: &Arc<ServerSlots<H>>, mut handoff: Option<H>) -> Option<H> {
        let mut state = self.lock();
        slots.word.free();
        let wakers = self.settle(&mut state, slots, &mut handoff);
        drop(state);
        wake(wakers);
        handoff
    }

    pub(super) fn awaits_handoff(&self, slots: &ServerSlots<H>, from: u64) -> bool {
        let state = self.lock();
        let oldest = state.oldest(slots).and_then(|ticket| state.waiters.get(&ticket));
        let Some(QueueEntry::Waiting(waiting)) = oldest else { return false };
        waiting.worker.is_some_and(|worker| worker != from)
    }

    pub(super) fn set_max(&self, slots: &Arc<ServerSlots<H>>, max: u32) {
        let mut state = self.lock();
        slots.word.set_max(max);
        let wakers = self.settle(&mut state, slots, &mut None);
        drop(state);
        wake(wakers);
    }

    /// Gives the server's free slots to the requests that wait for it, the oldest first.
    fn settle(
        &self,
        state: &mut QueueState<H>,
        slots: &Arc<ServerSlots<H>>,
        handoff: &mut Option<H>,
    ) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(ticket) = state.oldest(slots)
            && slots.word.claim()
            && let Some(waiting) = state.take_waiting(ticket)
        {
            waiting.servers.iter().for_each(|slots| slots.word.leave());
            self.each_counter(&waiting.home, Counters::leave);
            wakers.extend(waiting.waker);
            let slot = ServerSlot::new(Arc::clone(slots));
            let granted = QueueEntry::Granted { slot, handoff: handoff.take(), home: waiting.home };
            state.waiters.insert(ticket, granted);
        }
        wakers
    }

    pub(super) fn withdraw(&self, slots: &Arc<ServerSlots<H>>, group: u64) {
        let mut wakers = Vec::new();
        let mut state = self.lock();
        for ticket in state.all(slots) {
            let QueueState { waiters, order, .. } = &mut *state;
            let Some(entry) = waiters.get_mut(&ticket) else { continue };
            let QueueEntry::Waiting(waiting) = entry else { continue };
            if waiting.group != group {
                continue;
            }
            order.remove(&(slots.id, ticket));
            slots.word.leave();
            waiting.servers.retain(|other| !Arc::ptr_eq(other, slots));
            if waiting.servers.is_empty() {
                self.each_counter(&waiting.home, Counters::leave);
                self.end(&waiting.home, WaitEnd::Stranded);
                wakers.extend(waiting.waker.take());
                *entry = QueueEntry::Stranded;
            } else if Arc::ptr_eq(&waiting.home, slots) {
                waiting.move_home();
            }
        }
        drop(state);
        wake(wakers);
    }

    pub(super) fn admit(&self, slots: &Arc<ServerSlots<H>>, group: u64) {
        let mut state = self.lock();
        let QueueState { waiters, order, .. } = &mut *state;
        for (ticket, entry) in waiters {
            let QueueEntry::Waiting(waiting) = entry else { continue };
            if waiting.group == group
                && !waiting.tried.contains(&slots.id)
                && order.insert((slots.id, *ticket))
            {
                slots.word.enter();
                waiting.servers.push(Arc::clone(slots));
            }
        }
        let wakers = self.settle(&mut state, slots, &mut None);
        drop(state);
        wake(wakers);
    }

    /// The result of a ticket, once; the ticket is void after that. Until there is one, `waker` is
    /// remembered.
    pub(super) fn answer(&self, ticket: u64, waker: &Waker) -> Option<QueueEntry<H>> {
        let mut state = self.lock();
        if let Some(QueueEntry::Waiting(waiting)) = state.waiters.get_mut(&ticket) {
            let kept = waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker));
            let old = if kept { None } else { waiting.waker.replace(waker.clone()) };
            drop(state);
            drop(old);
            return None;
        }
        state.waiters.remove(&ticket)
    }

    /// Removes a ticket from the queue, in whatever state it is.
    pub(super) fn quit(&self, ticket: u64) -> Option<QueueEntry<H>> {
        let mut state = self.lock();
        let Some(waiting) = state.take_waiting(ticket) else {
            return state.waiters.remove(&ticket);
        };
        waiting.servers.iter().for_each(|slots| slots.word.leave());
        self.each_counter(&waiting.home, Counters::leave);
        Some(QueueEntry::Waiting(waiting))
    }

    pub(super) fn end(&self, home: &ServerSlots<H>, how: WaitEnd) {
        self.each_counter(home, |counters| counters.end(how));
    }

    fn each_counter(&self, home: &ServerSlots<H>, count: impl Fn(&Counters)) {
        count(&self.counters);
        count(&home.counters);
    }

    /// Removes a server that is gone; another one may have its name by now.
    pub(super) fn forget(&self, name: &[u8]) {
        let mut servers = self.lock_servers();
        if servers.by_name.get(name).is_some_and(|slots| slots.strong_count() == 0) {
            servers.by_name.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_servers(&self) -> std::sync::MutexGuard<'_, QueueServers<H>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H> QueueState<H> {
    fn push(&mut self, waiting: QueuedRequest<H>) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.order.extend(waiting.servers.iter().map(|slots| (slots.id, ticket)));
        self.waiters.insert(ticket, QueueEntry::Waiting(waiting));
        ticket
    }

    fn oldest(&self, slots: &ServerSlots<H>) -> Option<u64> {
        let all = (slots.id, 0)..=(slots.id, u64::MAX);
        self.order.range(all).next().map(|(_, ticket)| *ticket)
    }

    fn all(&self, slots: &ServerSlots<H>) -> Vec<u64> {
        let all = (slots.id, 0)..=(slots.id, u64::MAX);
        self.order.range(all).map(|(_, ticket)| *ticket).collect()
    }

    /// Removes a request that still waits. The caller changes the words.
    fn take_waiting(&mut self, ticket: u64) -> Option<QueuedRequest<H>> {
        if !matches!(self.waiters.get(&ticket), Some(QueueEntry::Waiting(_))) {
            return None;
        }
        let Some(QueueEntry::Waiting(waiting)) = self.waiters.remove(&ticket) else { return None };
        for slots in &waiting.servers {
            self.order.remove(&(slots.id, ticket));
        }
        Some(waiting)
    }
}

impl<H> QueuedRequest<H> {
    /// Moves it to the backlog of another of its servers, even beyond that server's limit: a
    /// request that was let in is not turned away.
    fn move_home(&mut self) {
        if let Some(next) = self.servers.first() {
            self.home.counters.leave();
            next.counters.enter();
            self.home = Arc::clone(next);
        }
    }
}

impl<H> Debug for WaitQueue<H> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.stats().fmt(out)
    }
}

/// Each server once. A group may name an address twice.
fn distinct<H>(servers: &[Arc<ServerSlots<H>>]) -> Vec<Arc<ServerSlots<H>>> {
    let mut distinct = servers.to_vec();
    distinct.sort_unstable_by_key(|slots| slots.id);
    distinct.dedup_by_key(|slots| slots.id);
    distinct
}

fn wake(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
