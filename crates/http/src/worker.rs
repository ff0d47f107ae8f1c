//! What a worker has for HTTP: the newest generation, and exchanges to lend.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ::upstream::Discovery;
use net::{Accepted, Gate, Lot, Probe, Roll, Stream};
use observe::Counts;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::features;
use crate::h1::{self, Held, Parked};
use crate::site::Generation;

/// Exchanges kept for later.
const EXCHANGES_KEPT_MAX: usize = 1024;

/// Memory of an exchange that is kept for later: one that needed more for its variables, its fields
/// or its text is not kept.
const EXCHANGE_MEMORY_MAX: usize = 96 * 1024;

/// Memory of all exchanges that a worker keeps.
const EXCHANGES_MEMORY_MAX: usize = 8 * 1024 * 1024;

/// Idle connections that end at once when there is no room for new ones.
const RECLAIMED_MAX: usize = 32;

/// Exchanges that begin to wait, for a backend mostly, before others are given what they wait for.
/// With some hundred clients at once these few stay in the processor's cache, and fewer connections
/// to backends are in use.
const WAITS_PER_TURN: usize = 64;

/// One worker's HTTP.
pub struct Worker {
    generation: RefCell<Rc<Generation>>,
    /// Names of servers that are looked up as long as the generation is the newest.
    discovery: RefCell<Discovery>,
    /// Exchanges to lend, and how much memory each keeps. Boxed, since they go back and forth and
    /// are large.
    idle: RefCell<Vec<(Box<Exchange>, usize)>>,
    /// The memory of `idle`.
    idle_memory: Cell<usize>,
    /// What this worker counts for `stub_status`.
    pub(crate) counts: &'static Counts,
    roll: Rc<Roll>,
    /// Where idle connections wait; `None` where there was no descriptor left for it.
    lot: Option<Rc<Lot<Parked>>>,
    /// Before exchanges of which many may wait at a time.
    pub(crate) gate: Rc<Gate>,
    leaving: Cell<bool>,
    /// How many connections that wait for another request are to end.
    wanted_back: Cell<usize>,
}

impl Worker {
    /// A worker that serves this configuration.
    pub fn new(generation: Rc<Generation>) -> Rc<Self> {
        net::at_turn_end(observe::end_turn);
        let discovery = RefCell::new(Discovery::of(&generation.groups));
        let worker = Rc::new(Self {
            generation: RefCell::new(generation),
            discovery,
            idle: RefCell::default(),
            idle_memory: Cell::new(0),
            counts: Counts::of_worker(),
            roll: Rc::default(),
            lot: Lot::new().ok(),
            gate: Gate::new(WAITS_PER_TURN),
            leaving: Cell::new(false),
            wanted_back: Cell::new(0),
        });
        if let Some(lot) = &worker.lot {
            let weak = Rc::downgrade(&worker);
            net::spawn(lot.clone().attend(move |stream, parked| {
                if let Some(worker) = weak.upgrade() {
                    worker.resume(stream, parked);
                }
            }));
        }
        worker
    }

    /// Serves a new connection; `debug`: all its messages are logged.
    pub fn start(self: &Rc<Self>, accepted: Accepted, debug: bool) {
        let Accepted { stream, peer, slot, seat } = accepted;
        let accepted_under = self.generation.borrow().number;
        let held = Held { _open: self.counts.accept(), _seat: seat, accepted_under };
        let (serial, socket) = (observe::connection_number(), Probe::new(&stream));
        let mut client = Client::new(serial, peer, socket, slot);
        client.debug = debug;
        self.roll.spawn(accepted_under, h1::serve(self.clone(), Rc::new(client), stream, held));
    }

    /// Parks an idle connection until bytes come, or it is closed after `left_ms`.
    pub(crate) fn park(&self, stream: Stream, parked: Parked, left_ms: u64) {
        if let Some(lot) = &self.lot {
            lot.park(stream, parked, left_ms);
        }
    }

    fn resume(self: &Rc<Self>, stream: Stream, parked: Parked) {
        let accepted_under = parked.held.accepted_under;
        self.roll.spawn(accepted_under, h1::resume(self.clone(), stream, parked));
    }

    fn close_parked(&self, keep: impl FnMut(&Parked) -> bool) {
        if let Some(lot) = &self.lot {
            lot.retain(keep);
        }
    }

    /// From now on every next request is served by this configuration. Connections are woken, since
    /// some may have come by a socket that it does not have.
    pub fn replace(&self, generation: Rc<Generation>) {
        self.discovery.replace(Discovery::of(&generation.groups));
        self.generation.replace(generation);
        // They hold the old generation.
        self.idle.borrow_mut().clear();
        self.idle_memory.set(0);
        self.close_parked(|parked| self.keeps_socket(parked.client.listen));
        self.roll.wake_all();
    }

    /// Lets go of what only configurations that are gone needed: log files, and sockets to syslog
    /// servers. Lines that wait are written.
    pub fn forget_old(&self) {
        observe::flush_all();
        features::log::forget_old();
    }

    /// Ends the connections accepted under earlier generations than this.
    pub fn cut_before(&self, generation: u64) {
        self.close_parked(|parked| parked.held.accepted_under >= generation);
        self.roll.cut_before(generation);
    }

    /// Idle connections end now, the others with the reply under way. Ready once none is left.
    pub async fn leave(&self) {
        self.leaving.set(true);
        self.close_parked(|_| false);
        self.roll.wake_all();
        self.roll.empty().await;
    }

    /// How many idle connections are parked.
    #[cfg(test)]
    pub(crate) fn parked(&self) -> usize {
        self.lot.as_ref().map_or(0, |lot| lot.len())
    }

    /// Whether idle connections can be parked.
    pub(crate) fn can_park(&self) -> bool {
        self.lot.is_some()
    }

    /// Ends a few connections that wait for another request: parked ones at once, others as soon
    /// as their tasks have run.
    pub fn make_room(&self) {
        let parked = self.lot.as_ref().map_or(0, |lot| lot.len());
        let mut wanted = ((parked + self.roll.len()) / 8).clamp(1, RECLAIMED_MAX);
        self.close_parked(|_| {
            let kept = wanted == 0;
            wanted = wanted.saturating_sub(1);
            kept
        });
        if wanted > 0 {
            self.wanted_back.set(wanted);
            self.roll.wake_all();
        }
    }

    /// Asked by a connection that waits for another request: whether it is to end for others.
    pub(crate) fn wants_back(&self) -> bool {
        let wanted = self.wanted_back.get();
        self.wanted_back.set(wanted.saturating_sub(1));
        wanted > 0
    }

    /// Whether the newest configuration has this listening socket.
    pub fn listens(&self, slot: u32) -> bool {
        self.generation.borrow().listen(slot).is_some()
    }

    /// Whether a connection may wait for a further request.
    pub(crate) fn keeps(&self, client: &Client) -> bool {
        self.keeps_socket(client.listen)
    }

    fn keeps_socket(&self, listen: u32) -> bool {
        !self.leaving.get() && self.listens(listen)
    }

    /// The newest configuration.
    pub(crate) fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// An exchange for the next request of a connection; `None` where the newest configuration no
    /// longer has the socket that it came by.
    pub(crate) fn lend(&self, client: &Rc<Client>) -> Option<Box<Exchange>> {
        let generation = self.generation.borrow();
        generation.listen(client.listen)?;
        let mut exchange = match self.idle.borrow_mut().pop() {
            Some((kept, memory)) => {
                self.idle_memory.set(self.idle_memory.get() - memory);
                kept
            }
            None => Box::new(Exchange::new(client.clone(), generation.clone())),
        };
        exchange.renew(client, &generation);
        Some(exchange)
    }

    /// Takes an exchange back, unless it would keep too much memory or an old configuration.
    pub(crate) fn give_back(&self, mut exchange: Box<Exchange>) {
        exchange.retire();
        let memory = exchange.memory();
        let mut idle = self.idle.borrow_mut();
        let kept_memory = self.idle_memory.get() + memory;
        let current = Rc::ptr_eq(&exchange.generation, &self.generation.borrow());
        let fits = memory <= EXCHANGE_MEMORY_MAX
            && kept_memory <= EXCHANGES_MEMORY_MAX
            && idle.len() < EXCHANGES_KEPT_MAX;
        if current && fits {
            self.idle_memory.set(kept_memory);
            idle.push((exchange, memory));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::site;

    const VALUES: &str = "large_client_header_buffers 4 512k; server { location / { return 200; } \
                          location /a { set $a $args; set $b \"$a$a$a$a\"; return 200; } }";

    /// How many exchanges a worker keeps, and their memory, after `count` at once, each with
    /// values as long as `length`.
    fn kept(count: usize, length: usize) -> (usize, usize) {
        let site = site(VALUES);
        let worker = net::run(async { Worker::new(site.generation.clone()) }).unwrap();
        let client = Rc::new(Client::new(1, None, Probe::NONE, 0));
        let mut lent: Vec<_> = (0..count).filter_map(|_| worker.lend(&client)).collect();
        assert_eq!(lent.len(), count);
        let value = vec![b'x'; length];
        for x in &mut lent {
            for id in 0..2 {
                x.set_value(conf::VariableId(id), &value).unwrap();
            }
        }
        lent.into_iter().for_each(|x| worker.give_back(x));
        let idle = worker.idle.borrow();
        let memory: usize = idle.iter().map(|(x, _)| x.memory()).sum();
        assert_eq!(memory, worker.idle_memory.get());
        (idle.len(), memory)
    }

    #[test]
    fn what_variables_took_is_not_kept_for_ever() {
        assert_eq!(kept(100, 100).0, 100);
        assert_eq!(kept(3, EXCHANGE_MEMORY_MAX), (0, 0));
        let (count, memory) = kept(1000, EXCHANGE_MEMORY_MAX / 8);
        assert!(memory <= EXCHANGES_MEMORY_MAX, "{memory}");
        assert!(memory > EXCHANGES_MEMORY_MAX / 2 && count > 0, "{count} {memory}");
    }

    #[test]
    fn what_is_lent_is_not_counted() {
        let site = site(VALUES);
        let worker = net::run(async { Worker::new(site.generation.clone()) }).unwrap();
        let client = Rc::new(Client::new(1, None, Probe::NONE, 0));
        for _ in 0..3 {
            let x = worker.lend(&client).unwrap();
            assert_eq!(worker.idle_memory.get(), 0);
            worker.give_back(x);
            assert!(worker.idle_memory.get() > 0);
        }
    }
}
