//! The exchange with one store: connecting, pipelines at an interval, the heartbeat of the nodes.
//!
//! ```text
//! lost --connected, first answer--> found --a fault--> lost, a pause, connecting again
//! ```
//!
//! The nodes are a sorted set in the store, each with the store's time of its last heartbeat, so
//! the clocks of the nodes do not matter. A node that has been silent for [`ALIVE_MS`] is gone. A
//! second set has the masters of the nodes: processes of one master share some counts
//! ([`upstream::limit::SharedTable`]), and are one where those are limited.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use net::clock;
use observe::Level;
use upstream::{LiveNodes, ResolverPolicy, StateMemory};
use wire::resp::{RespCommands, RespReply, RespValue};

use super::address::{NODES_MAX, StoreAddress};
use super::link::{StoreFault, StoreLink};
use super::status::StoreStatus;
use super::{StoreTalk, StoreTurn};

/// This process among the nodes. Its exchanges with one store are one node, also while a reload
/// replaces one by another.
static NODE: LazyLock<u64> = LazyLock::new(net::system::random);

const HEARTBEAT_MS: u64 = 1000;
/// How long a node without a heartbeat is counted.
const ALIVE_MS: u64 = 5 * HEARTBEAT_MS;
/// The set of nodes stays in the store for so long without any node.
const NODES_TTL_MS: &[u8] = b"60000";
/// The commands of a heartbeat, for each of two sets.
const SET_COMMANDS: usize = 4;
const HEARTBEAT_COMMANDS: usize = 2 * SET_COMMANDS;
/// The pause after the first failure; each further pause is twice as long.
const PAUSE_MS: u64 = 100;
const PAUSE_MS_MAX: u64 = 2000;
/// A connection that has lasted so long was a good one: the next pause is short again.
const LASTING_MS: u64 = 5000;

pub(super) struct StoreExchange {
    pub(super) address: StoreAddress,
    names: ResolverPolicy,
    /// This process among the nodes.
    node: String,
    /// Its master among those of all nodes: the same for all processes that share counts.
    master: String,
    talks: RefCell<Vec<Box<dyn StoreTalk>>>,
    /// The members of a newer configuration, for the next pipeline on.
    next: RefCell<Option<Vec<Box<dyn StoreTalk>>>>,
    pub(super) status: Arc<StoreStatus>,
    /// The last known number of nodes.
    nodes: Cell<LiveNodes>,
    is_up: Cell<bool>,
    has_logged: Cell<bool>,
}

/// The store's clock: its time at one moment of ours.
#[derive(Clone, Copy)]
struct StoreClock {
    store_ms: i64,
    read_ms: u64,
}

/// A connection in use.
struct StoreSession {
    link: StoreLink,
    clock: StoreClock,
    /// When the store began to know this node. Others that lost it, too, may still be missing.
    known_ms: u64,
    /// The last heartbeat.
    beat_ms: Option<u64>,
    commands: RespCommands,
}

impl StoreExchange {
    pub(super) fn new(address: StoreAddress, names: ResolverPolicy) -> Rc<Self> {
        let status = StoreStatus::of(address.shown());
        let nodes = Cell::new(LiveNodes::alone(address.nodes));
        let node = *NODE;
        let master = StateMemory::process().table().map_or(node, |table| table.id());
        Rc::new(Self {
            address,
            names,
            node: format!("{node:016x}"),
            master: format!("{master:016x}"),
            talks: RefCell::default(),
            next: RefCell::default(),
            status,
            nodes,
            is_up: Cell::new(false),
            has_logged: Cell::new(false),
        })
    }

    /// Continues with other members. They know at once whether the store can be used.
    pub(super) fn serve(&self, mut talks: Vec<Box<dyn StoreTalk>>) {
        for talk in &mut talks {
            talk.counted(self.nodes.get());
            if self.is_up.get() { talk.found() } else { talk.lost(self.nodes.get().processes) }
        }
        self.next.replace(Some(talks));
    }

    pub(super) async fn run(self: Rc<Self>) {
        let mut pause_ms = PAUSE_MS;
        loop {
            let begun_ms = clock::now_ms();
            let fault = match self.connect().await {
                Ok(mut session) => self.exchange_until_fault(&mut session).await,
                Err(fault) => fault,
            };
            self.lose(&fault);
            self.each_talk(|talk| talk.waits());
            if clock::now_ms().saturating_sub(begun_ms) >= LASTING_MS {
                pause_ms = PAUSE_MS;
            }
            // Nodes that lost the store together do not come back together.
            let random_ms = net::system::random() % (pause_ms / 2 + 1);
            net::sleep(Duration::from_millis(pause_ms + random_ms)).await;
            pause_ms = (pause_ms * 2).min(PAUSE_MS_MAX);
        }
    }

    async fn connect(&self) -> Result<StoreSession, StoreFault> {
        let mut link = StoreLink::open(&self.address, &self.names).await?;
        let mut commands = RespCommands::default();
        match (&self.address.user, &self.address.password) {
            (Some(user), Some(password)) => commands.add(&[b"AUTH", user, password]),
            (None, Some(password)) => commands.add(&[b"AUTH", password]),
            (_, None) => {}
        }
        if self.address.database > 0 {
            commands.add(&[b"SELECT", self.address.database.to_string().as_bytes()]);
        }
        commands.add(&[b"TIME"]);
        let replies = link.exchange(&commands).await?;
        let clock = StoreClock::read(replies.last())?;
        let known_ms = clock::now_ms();
        Ok(StoreSession { link, clock, known_ms, beat_ms: None, commands })
    }

    async fn exchange_until_fault(&self, session: &mut StoreSession) -> StoreFault {
        loop {
            let begun_ms = clock::now_ms();
            if let Err(fault) = self.exchange(session).await {
                return fault;
            }
            if !self.is_up.get() {
                self.find();
            }
            let taken_ms = clock::now_ms().saturating_sub(begun_ms);
            // A slow store gets pauses, too.
            let wait_ms = self.address.interval_ms.saturating_sub(taken_ms).max(1);
            net::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// One pipeline. Before the store is found, members have nothing to exchange.
    async fn exchange(&self, session: &mut StoreSession) -> Result<(), StoreFault> {
        if let Some(next) = self.next.take() {
            self.talks.replace(next);
        }
        let mut commands = std::mem::take(&mut session.commands);
        commands.clear();
        commands.add(&[b"TIME"]);
        let beats = session.beats_now();
        if beats {
            self.add_heartbeat(session.clock, &mut commands);
        }
        let mut counts = Vec::new();
        self.status.keys_waiting.store(0, Relaxed);
        for talk in self.talks.borrow_mut().iter_mut() {
            let before = commands.count();
            talk.ask(&self.turn(session.clock), &mut commands);
            counts.push(commands.count() - before);
        }
        let replies = session.link.exchange(&commands).await;
        session.commands = commands;
        let replies = replies?;
        session.clock = StoreClock::read(replies.first())?;
        let mut rest = &replies[1..];
        if beats {
            let (own, others) = rest.split_at(HEARTBEAT_COMMANDS);
            self.count_nodes(own, session)?;
            rest = others;
        }
        for (talk, count) in self.talks.borrow_mut().iter_mut().zip(counts) {
            let (own, others) = rest.split_at(count);
            talk.take(&self.turn(session.clock), own).map_err(StoreFault::Unexpected)?;
            rest = others;
        }
        self.status.exchanges.fetch_add(1, Relaxed);
        self.status.exchanged_at_ms.store(clock::unix_ms(), Relaxed);
        Ok(())
    }

    fn turn(&self, clock: StoreClock) -> StoreTurn<'_> {
        StoreTurn {
            prefix: &self.address.prefix,
            now_ms: clock::now_ms(),
            monotonic_ms: clock::monotonic_ms(),
            store_ms: clock.now_ms(),
            nodes: self.nodes.get().processes,
            status: &self.status,
        }
    }

    fn add_heartbeat(&self, clock: StoreClock, commands: &mut RespCommands) {
        let now_ms = clock.now_ms();
        let gone_ms = now_ms.saturating_sub_unsigned(ALIVE_MS);
        let [now, gone] = [now_ms, gone_ms].map(|time_ms| time_ms.to_string());
        for (set, own) in [(&b"nodes"[..], &self.node), (b"masters", &self.master)] {
            let key = [&self.address.prefix, set].concat();
            commands.add(&[b"ZADD", &key, now.as_bytes(), own.as_bytes()]);
            commands.add(&[b"ZREMRANGEBYSCORE", &key, b"-inf", gone.as_bytes()]);
            commands.add(&[b"ZCARD", &key]);
            commands.add(&[b"PEXPIRE", &key, NODES_TTL_MS]);
        }
    }

    /// The number does not fall just after a connection, or after the store has lost its sets:
    /// nodes may be missing that have not come back yet.
    fn count_nodes(
        &self,
        replies: &[RespReply],
        session: &mut StoreSession,
    ) -> Result<(), StoreFault> {
        let (nodes, masters) = replies.split_at(SET_COMMANDS);
        let added = nodes.first().and_then(|reply| reply.first()?.as_number());
        if added == Some(1) {
            session.known_ms = clock::now_ms();
        }
        let mut counted =
            LiveNodes { processes: cardinality(nodes)?, masters: cardinality(masters)? };
        let known = self.nodes.get();
        if clock::now_ms().saturating_sub(session.known_ms) < ALIVE_MS {
            counted.processes = counted.processes.max(known.processes);
            counted.masters = counted.masters.max(known.masters);
        }
        let LiveNodes { processes, masters } = counted;
        self.status.nodes.store(u64::from(processes), Relaxed);
        self.status.masters.store(u64::from(masters), Relaxed);
        if counted != self.nodes.replace(counted) {
            let shown = self.address.shown();
            let text = format_args!("store {shown}: {processes} nodes of {masters} masters");
            observe::log(Level::Notice, text);
            self.each_talk(|talk| talk.counted(counted));
        }
        Ok(())
    }

    fn find(&self) {
        self.is_up.set(true);
        self.status.is_up.store(1, Relaxed);
        self.each_talk(|talk| talk.found());
        self.has_logged.set(false);
        let shown = self.address.shown();
        observe::log(Level::Notice, format_args!("store {shown} is used"));
    }

    fn lose(&self, fault: &StoreFault) {
        let nodes = self.nodes.get().processes;
        self.status.failures.fetch_add(1, Relaxed);
        if self.is_up.replace(false) {
            self.status.is_up.store(0, Relaxed);
            self.each_talk(|talk| talk.lost(nodes));
        }
        if !self.has_logged.replace(true) {
            let mut told = std::collections::BTreeSet::new();
            self.each_talk(|talk| _ = told.insert(talk.told_lost(nodes)));
            let told: Vec<_> = told.into_iter().collect();
            let (shown, told) = (self.address.shown(), told.join("; "));
            let text = format_args!("store {shown} cannot be used: {fault}; {told}");
            observe::log(Level::Error, text);
        }
    }

    fn each_talk(&self, mut call: impl FnMut(&mut Box<dyn StoreTalk>)) {
        self.talks.borrow_mut().iter_mut().for_each(&mut call);
        self.next.borrow_mut().iter_mut().flatten().for_each(call);
    }
}

/// The number of members of a set, from the replies to its part of a heartbeat.
fn cardinality(replies: &[RespReply]) -> Result<u32, StoreFault> {
    let counted = match replies.get(2).map(Vec::as_slice) {
        Some([value]) => value.as_number(),
        _ => None,
    };
    let counted = counted.ok_or(StoreFault::Unexpected("no number of nodes"))?;
    Ok(u32::try_from(counted).unwrap_or(1).clamp(1, NODES_MAX))
}

impl StoreSession {
    /// Whether a heartbeat is due.
    fn beats_now(&mut self) -> bool {
        let now_ms = clock::now_ms();
        let is_due = self.beat_ms.is_none_or(|beat_ms| now_ms >= beat_ms + HEARTBEAT_MS);
        if is_due {
            self.beat_ms = Some(now_ms);
        }
        is_due
    }
}

impl StoreClock {
    /// Takes the reply to `TIME`.
    fn read(reply: Option<&RespReply>) -> Result<Self, StoreFault> {
        let number = |value: &RespValue| value.as_number().filter(|number| *number >= 0);
        let read = match reply.map(Vec::as_slice) {
            Some([seconds, micros]) => number(seconds).zip(number(micros)),
            _ => None,
        };
        let (seconds, micros) = read.ok_or(StoreFault::Unexpected("no time in its answer"))?;
        let store_ms = seconds.saturating_mul(1000).saturating_add(micros / 1000);
        Ok(Self { store_ms, read_ms: clock::now_ms() })
    }

    fn now_ms(self) -> i64 {
        self.store_ms.saturating_add_unsigned(clock::now_ms().saturating_sub(self.read_ms))
    }
}
