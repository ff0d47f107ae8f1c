//! The line of those that wait: one for each zone, or for each group that has no zone.
//!
//! Everything here happens under one mutex, which is taken only while somebody waits or wants to.
//! Wakers are called, and what others own is dropped, after it is let go.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, PoisonError, Weak};
use std::task::Waker;

use super::row::{self, TableRow};
use super::slots::{ServerSlot, ServerSlots};
use super::sync::{Mutex, MutexGuard};
use super::table::SharedTable;
use super::tally::{Counters, LimitStats, WaitEnd};
use super::waiter::Waiter;
use super::word_state::SLOTS_MAX;

/// Servers, and the requests that wait for one of them, in the order of joining.
pub struct WaitQueue<G> {
    queue: Mutex<QueueState<G>>,
    servers: std::sync::Mutex<QueueServers<G>>,
    counters: Counters,
    shared: Option<ProcessLink>,
}

/// What connects the line with those of other processes.
struct ProcessLink {
    table: Arc<SharedTable>,
    name: Box<[u8]>,
}

/// What a request says when it joins.
pub struct JoinRequest<'a, G> {
    /// The servers it may use, all of this line; the one it likes best comes first.
    pub servers: &'a [Arc<ServerSlots<G>>],
    /// Servers it has tried before, so that [`ServerSlots::admit`] passes it by.
    pub tried: &'a [Arc<ServerSlots<G>>],
    /// The group it belongs to, as in [`ServerSlots::withdraw`] and [`ServerSlots::admit`].
    pub group: u64,
    /// How long the line may be for it.
    pub backlog: Backlog,
    /// Whom it takes gifts for, if it wants one: [`ServerSlots::awaits_gift`].
    pub taker: Option<u64>,
    /// The time, by the clock of the thread that will poll.
    pub now_ms: u64,
}

/// How many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// So many at each server (`limit_upstream_conn backlog=`). A request has its place at the
    /// first of its servers where one is left. 0: nobody waits (`nodelay`).
    OfServer(u32),
    /// So many in the whole line (`queue`).
    OfLine(u32),
}

/// There is no place left to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Under the mutex.
struct QueueState<G> {
    /// Tickets are numbered from here on, so the smaller one is the older.
    next_ticket: u64,
    waiters: BTreeMap<u64, QueueEntry<G>>,
    /// `(server, ticket)`: who waits for a server, the oldest first.
    order: BTreeSet<(u64, u64)>,
}

/// What the line knows of a ticket until its waiter has been told.
pub(super) enum QueueEntry<G> {
    Waiting(QueuedRequest<G>),
    Granted { slot: ServerSlot<G>, gift: Option<G>, home: Arc<ServerSlots<G>> },
    Stranded,
}

pub(super) struct QueuedRequest<G> {
    /// Not empty, each once.
    servers: Vec<Arc<ServerSlots<G>>>,
    tried: Vec<u64>,
    group: u64,
    taker: Option<u64>,
    /// The server in whose backlog it has its place.
    pub(super) home: Arc<ServerSlots<G>>,
    waker: Option<Waker>,
}

/// The line's servers by name.
struct QueueServers<G> {
    next_id: u64,
    by_name: HashMap<Box<[u8]>, Weak<ServerSlots<G>>>,
}

impl<G> WaitQueue<G> {
    /// A line without servers.
    pub fn new() -> Arc<Self> {
        Self::make(None)
    }

    /// The same, with limits shared with the lines of this name in other processes. In one process
    /// there is at most one line of a name.
    pub fn shared(name: &[u8], table: &Arc<SharedTable>) -> Arc<Self> {
        Self::make(Some(ProcessLink { table: Arc::clone(table), name: name.into() }))
    }

    fn make(shared: Option<ProcessLink>) -> Arc<Self> {
        let queue = QueueState { next_ticket: 0, waiters: BTreeMap::new(), order: BTreeSet::new() };
        let servers = QueueServers { next_id: 0, by_name: HashMap::new() };
        Arc::new(Self {
            queue: Mutex::new(queue),
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

    /// Gives free slots to requests that wait: another process may have freed some. Answers whether
    /// a request still waits.
    pub fn settle_all(&self) -> bool {
        let mut wakers = Vec::new();
        let mut is_awaited = false;
        for slots in self.servers() {
            if slots.waiting() > 0 {
                let mut queue = self.lock();
                wakers.extend(self.settle(&mut queue, &slots, &mut None));
                is_awaited |= slots.waiting() > 0;
            }
        }
        wake(wakers);
        is_awaited
    }

    /// The server of that name (its address): the one there is, left as it is, or a new one with
    /// this maximum.
    pub fn slots(self: &Arc<Self>, name: &[u8], max: u32) -> Arc<ServerSlots<G>> {
        let mut servers = self.lock_servers();
        if let Some(known) = servers.by_name.get(name).and_then(Weak::upgrade) {
            return known;
        }
        servers.next_id += 1;
        let slots = Arc::new(ServerSlots::new(self, servers.next_id, name, max));
        servers.by_name.insert(name.into(), Arc::downgrade(&slots));
        slots
    }

    /// Whether somebody still uses the server of that name.
    pub fn has(&self, name: &[u8]) -> bool {
        self.lock_servers().by_name.get(name).is_some_and(|slots| slots.strong_count() > 0)
    }

    /// The servers that somebody still uses.
    pub fn servers(&self) -> Vec<Arc<ServerSlots<G>>> {
        self.lock_servers().by_name.values().filter_map(Weak::upgrade).collect()
    }

    /// The counters of the whole line.
    pub fn tally(&self) -> LimitStats {
        let in_progress = self.servers().iter().map(|slots| u64::from(slots.in_progress())).sum();
        self.counters.read(in_progress)
    }

    /// Takes a place behind all who wait for one of these servers. A slot that is free after all is
    /// granted at once, and the first poll tells.
    pub fn join(self: &Arc<Self>, wish: JoinRequest<'_, G>) -> Result<Waiter<G>, QueueFull> {
        debug_assert!(wish.servers.iter().all(|slots| Arc::ptr_eq(&slots.line, self)));
        let servers = distinct(wish.servers);
        let mut queue = self.lock();
        // From here on none of them is taken or freed behind our back, so "all are full" is true of
        // one moment.
        servers.iter().for_each(|slots| slots.word.enter());
        if let Some(free) = wish.servers.iter().find(|slots| slots.word.claim()) {
            servers.iter().for_each(|slots| slots.word.leave());
            return Ok(Waiter::served(self, ServerSlot::new(Arc::clone(free)), wish.now_ms));
        }
        let Some(home) = self.place(&wish) else {
            servers.iter().for_each(|slots| slots.word.leave());
            self.reject(wish.servers.first());
            return Err(QueueFull);
        };
        let place = servers.iter().map(|slots| slots.word.load().waiting()).min().unwrap_or(0);
        self.each_counter(&home, Counters::queue);
        let tried = wish.tried.iter().map(|slots| slots.id).collect();
        let JoinRequest { group, taker, .. } = wish;
        let waiting = QueuedRequest { servers, tried, group, taker, home, waker: None };
        let ticket = queue.push(waiting);
        Ok(Waiter::queued(self, ticket, place, wish.now_ms))
    }

    /// The server in whose backlog the request gets a place.
    fn place(&self, wish: &JoinRequest<'_, G>) -> Option<Arc<ServerSlots<G>>> {
        let line = self.counters.waiting();
        let room = |slots: &&Arc<ServerSlots<G>>| match wish.backlog {
            Backlog::OfServer(max) => slots.counters.waiting() < max.into(),
            Backlog::OfLine(max) => line < max.into(),
        };
        if line >= SLOTS_MAX.into() {
            return None;
        }
        wish.servers.iter().find(room).cloned()
    }

    fn reject(&self, preferred: Option<&Arc<ServerSlots<G>>>) {
        self.counters.reject();
        if let Some(slots) = preferred {
            slots.counters.reject();
        }
    }

    /// Frees a slot while somebody (perhaps) waits for it.
    pub(super) fn pass_on(&self, slots: &Arc<ServerSlots<G>>, mut gift: Option<G>) -> Option<G> {
        let mut queue = self.lock();
        slots.word.free();
        let wakers = self.settle(&mut queue, slots, &mut gift);
        drop(queue);
        wake(wakers);
        gift
    }

    pub(super) fn awaits_gift(&self, slots: &ServerSlots<G>, giver: u64) -> bool {
        let queue = self.lock();
        let oldest = queue.oldest(slots).and_then(|ticket| queue.waiters.get(&ticket));
        let Some(QueueEntry::Waiting(waiting)) = oldest else { return false };
        waiting.taker.is_some_and(|taker| taker != giver)
    }

    pub(super) fn set_max(&self, slots: &Arc<ServerSlots<G>>, max: u32) {
        let mut queue = self.lock();
        slots.word.set_max(max);
        let wakers = self.settle(&mut queue, slots, &mut None);
        drop(queue);
        wake(wakers);
    }

    /// Gives what is free of this server to those who wait for it, the oldest first.
    fn settle(
        &self,
        queue: &mut QueueState<G>,
        slots: &Arc<ServerSlots<G>>,
        gift: &mut Option<G>,
    ) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(ticket) = queue.oldest(slots)
            && slots.word.claim()
            && let Some(waiting) = queue.take_waiting(ticket)
        {
            waiting.servers.iter().for_each(|slots| slots.word.leave());
            self.each_counter(&waiting.home, Counters::leave);
            wakers.extend(waiting.waker);
            let slot = ServerSlot::new(Arc::clone(slots));
            let granted = QueueEntry::Granted { slot, gift: gift.take(), home: waiting.home };
            queue.waiters.insert(ticket, granted);
        }
        wakers
    }

    pub(super) fn withdraw(&self, slots: &Arc<ServerSlots<G>>, group: u64) {
        let mut wakers = Vec::new();
        let mut queue = self.lock();
        for ticket in queue.all(slots) {
            let QueueState { waiters, order, .. } = &mut *queue;
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
        drop(queue);
        wake(wakers);
    }

    pub(super) fn admit(&self, slots: &Arc<ServerSlots<G>>, group: u64) {
        let mut queue = self.lock();
        let QueueState { waiters, order, .. } = &mut *queue;
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
        let wakers = self.settle(&mut queue, slots, &mut None);
        drop(queue);
        wake(wakers);
    }

    /// What there is to tell the holder of a ticket, which is void then; else who to wake.
    pub(super) fn answer(&self, ticket: u64, waker: &Waker) -> Option<QueueEntry<G>> {
        let mut queue = self.lock();
        if let Some(QueueEntry::Waiting(waiting)) = queue.waiters.get_mut(&ticket) {
            let kept = waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker));
            let old = if kept { None } else { waiting.waker.replace(waker.clone()) };
            drop(queue);
            drop(old);
            return None;
        }
        queue.waiters.remove(&ticket)
    }

    /// Out of the line, whatever has become of the ticket.
    pub(super) fn quit(&self, ticket: u64) -> Option<QueueEntry<G>> {
        let mut queue = self.lock();
        let Some(waiting) = queue.take_waiting(ticket) else {
            return queue.waiters.remove(&ticket);
        };
        waiting.servers.iter().for_each(|slots| slots.word.leave());
        self.each_counter(&waiting.home, Counters::leave);
        Some(QueueEntry::Waiting(waiting))
    }

    pub(super) fn end(&self, home: &ServerSlots<G>, how: WaitEnd) {
        self.each_counter(home, |counters| counters.end(how));
    }

    fn each_counter(&self, home: &ServerSlots<G>, count: impl Fn(&Counters)) {
        count(&self.counters);
        count(&home.counters);
    }

    /// A server is gone; another may have taken its name meanwhile.
    pub(super) fn forget(&self, name: &[u8]) {
        let mut servers = self.lock_servers();
        if servers.by_name.get(name).is_some_and(|slots| slots.strong_count() == 0) {
            servers.by_name.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<G>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_servers(&self) -> std::sync::MutexGuard<'_, QueueServers<G>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> QueueState<G> {
    fn push(&mut self, waiting: QueuedRequest<G>) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.order.extend(waiting.servers.iter().map(|slots| (slots.id, ticket)));
        self.waiters.insert(ticket, QueueEntry::Waiting(waiting));
        ticket
    }

    fn oldest(&self, slots: &ServerSlots<G>) -> Option<u64> {
        let all = (slots.id, 0)..=(slots.id, u64::MAX);
        self.order.range(all).next().map(|(_, ticket)| *ticket)
    }

    fn all(&self, slots: &ServerSlots<G>) -> Vec<u64> {
        let all = (slots.id, 0)..=(slots.id, u64::MAX);
        self.order.range(all).map(|(_, ticket)| *ticket).collect()
    }

    /// Takes out one who waits still; the words are the caller's to change.
    fn take_waiting(&mut self, ticket: u64) -> Option<QueuedRequest<G>> {
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

impl<G> QueuedRequest<G> {
    /// Its place in a backlog moves to another of its servers, even beyond that one's bound: nobody
    /// is sent away who has been let in.
    fn move_home(&mut self) {
        if let Some(next) = self.servers.first() {
            self.home.counters.leave();
            next.counters.enter();
            self.home = Arc::clone(next);
        }
    }
}

impl<G> Debug for WaitQueue<G> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.tally().fmt(out)
    }
}

/// Each server once. A group may name an address twice.
fn distinct<G>(servers: &[Arc<ServerSlots<G>>]) -> Vec<Arc<ServerSlots<G>>> {
    let mut distinct = servers.to_vec();
    distinct.sort_unstable_by_key(|slots| slots.id);
    distinct.dedup_by_key(|slots| slots.id);
    distinct
}

fn wake(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
