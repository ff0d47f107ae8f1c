//! State that the drivers of one worker share: the newest configuration, and exchanges to lend.
//!
//! Absent: sockets, and starting drivers, which `worker` does.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use metrics::WorkerCounters;
use net::{ConnectionTracker, SparePool, TurnBudget};

use crate::client::Client;
use crate::exchange::{BackgroundTasks, Exchange};
use crate::site::Generation;

/// The most exchanges to keep for reuse.
const EXCHANGES_KEPT_MAX: usize = 1024;

/// The most memory of an exchange to keep. One that needed more for its variables, fields or text
/// is freed.
const EXCHANGE_MEMORY_MAX: usize = 96 * 1024;

/// The most memory of all kept exchanges of a worker.
const EXCHANGES_MEMORY_MAX: usize = 8 * 1024 * 1024;

/// How many exchanges may begin to wait, mostly for a backend, before the worker handles the events
/// that others wait for. With some hundred clients at once, these few stay in the processor's
/// cache, and fewer connections to backends are in use.
const WAITS_PER_TURN: usize = 64;

/// Clients that are to go elsewhere are told so in this many steps, lest all of them open new
/// connections at once.
pub(crate) const DRAIN_STEPS: u64 = 20;

/// The age of a connection that serves no request, or several. Only the end of the worker cuts it.
pub(crate) const OF_ANY_GENERATION: u64 = u64::MAX - 1;

/// The worker, as its drivers see it.
pub(crate) struct WorkerContext {
    generation: RefCell<Rc<Generation>>,
    /// Exchanges to lend, and the memory that each keeps. Boxed, because they are large and are
    /// moved often.
    idle: RefCell<SparePool<(Box<Exchange>, usize)>>,
    idle_memory: Cell<usize>,
    /// The worker's counters for `stub_status`.
    pub(crate) counts: WorkerCounters<'static>,
    /// Limits how many exchanges begin to wait per turn; requests are read only while it lasts.
    pub(crate) wait_budget: Rc<TurnBudget>,
    /// Whether idle connections can be parked.
    pub(crate) can_park: bool,
    leaving: Cell<bool>,
    /// While clients are to go elsewhere: connections that were told so. Those whose number, modulo
    /// [`DRAIN_STEPS`], is smaller than this.
    drain_step: Cell<u64>,
    /// The tasks of connections, each as old as the generation of the request it serves, and
    /// background tasks.
    pub(crate) tracker: Rc<ConnectionTracker>,
    /// How many idle connections are to end, because others need their places.
    wanted_back: Cell<usize>,
}

impl WorkerContext {
    pub(crate) fn new(generation: Rc<Generation>, can_park: bool) -> Rc<Self> {
        let tracker = Rc::default();
        BackgroundTasks::track_with(&generation, &tracker);
        let context = Rc::new(Self {
            generation: RefCell::new(generation),
            idle: RefCell::new(SparePool::new(EXCHANGES_KEPT_MAX)),
            idle_memory: Cell::new(0),
            counts: WorkerCounters::of_worker(),
            wait_budget: TurnBudget::new(WAITS_PER_TURN),
            can_park,
            leaving: Cell::new(false),
            drain_step: Cell::new(0),
            tracker,
            wanted_back: Cell::new(0),
        });
        let weak = Rc::downgrade(&context);
        net::memory::at_upkeep(move || weak.upgrade().map_or(0, |context| context.shrink()));
        context
    }

    /// The newest configuration.
    pub(crate) fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// Makes this the configuration of all requests that begin from now on.
    pub(crate) fn replace_generation(&self, generation: Rc<Generation>) {
        BackgroundTasks::track_with(&generation, &self.tracker);
        self.generation.replace(generation);
        // Kept exchanges hold the old generation.
        self.idle.borrow_mut().clear();
        self.idle_memory.set(0);
    }

    /// Makes every connection end after its current reply.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
    }

    /// Sets how many of [`DRAIN_STEPS`] parts of all connections are to go elsewhere.
    pub(crate) fn set_drain_step(&self, step: u64) {
        self.drain_step.set(step);
    }

    /// Whether the client of the connection with this number is to go elsewhere.
    pub(crate) fn sends_away(&self, serial: u64) -> bool {
        serial % DRAIN_STEPS < self.drain_step.get()
    }

    /// The running connection begins a request of the newest generation.
    pub(crate) fn begin_request(&self) {
        self.tracker.set_age(self.generation.borrow().number);
    }

    /// The running connection has no request any more.
    pub(crate) fn end_request(&self) {
        self.tracker.set_age(OF_ANY_GENERATION);
    }

    /// Makes `count` idle connections end.
    pub(crate) fn want_back(&self, count: usize) {
        self.wanted_back.set(count);
    }

    /// Whether the calling connection, which is idle, is to end because others need its place.
    pub(crate) fn wants_back(&self) -> bool {
        let wanted = self.wanted_back.get();
        self.wanted_back.set(wanted.saturating_sub(1));
        wanted > 0
    }

    /// Whether a connection may wait for another request.
    pub(crate) fn keeps(&self, client: &Client) -> bool {
        self.keeps_socket(client.listen)
    }

    /// The same, for a connection that was accepted by this listening socket.
    pub(crate) fn keeps_socket(&self, listen: u32) -> bool {
        !self.leaving.get() && self.listens(listen)
    }

    /// Whether the newest configuration has this listening socket.
    pub(crate) fn listens(&self, slot: u32) -> bool {
        self.generation.borrow().listen(slot).is_some()
    }

    /// An exchange for the next request of a connection. `None` if the newest configuration no
    /// longer has the listening socket that accepted it.
    pub(crate) fn lend(&self, client: &Rc<Client>) -> Option<Box<Exchange>> {
        let generation = self.generation.borrow();
        generation.listen(client.listen)?;
        let mut exchange = match self.idle.borrow_mut().take() {
            Some((kept, memory)) => {
                self.idle_memory.set(self.idle_memory.get() - memory);
                kept
            }
            None => Box::new(Exchange::new(client.clone(), generation.clone())),
        };
        exchange.reset(client, &generation);
        Some(exchange)
    }

    /// Takes an exchange back, unless it would keep too much memory or an old configuration.
    pub(crate) fn give_back(&self, mut exchange: Box<Exchange>) {
        exchange.release();
        let memory = exchange.memory();
        let mut idle = self.idle.borrow_mut();
        let kept_memory = self.idle_memory.get() + memory;
        let current = Rc::ptr_eq(&exchange.generation, &self.generation.borrow());
        let fits = memory <= EXCHANGE_MEMORY_MAX && kept_memory <= EXCHANGES_MEMORY_MAX;
        if current && fits && idle.put((exchange, memory)).is_none() {
            self.idle_memory.set(kept_memory);
        }
    }

    /// Frees some of the exchanges that stayed unused since the last call. Returns their bytes.
    fn shrink(&self) -> usize {
        let freed = self.idle.borrow_mut().shrink();
        let memory = freed.iter().map(|(_, memory)| memory).sum();
        self.idle_memory.set(self.idle_memory.get() - memory);
        memory
    }
}

#[cfg(test)]
mod tests {
    use net::SocketProbe;

    use super::*;
    use crate::testing::site;

    const VALUES: &str = "large_client_header_buffers 4 512k; server { location / { return 200; } \
                          location /a { set $a $args; set $b \"$a$a$a$a\"; return 200; } }";

    /// Lends `count` exchanges at once, each with values of `length` bytes. Returns how many of
    /// them the worker keeps, and their memory.
    fn kept(count: usize, length: usize) -> (usize, usize) {
        let site = site(VALUES);
        let worker =
            net::run(async { WorkerContext::new(site.generation.clone(), false) }).unwrap();
        let client = Rc::new(Client::new(1, None, SocketProbe::NONE, 0));
        let mut lent: Vec<_> = (0..count).filter_map(|_| worker.lend(&client)).collect();
        assert_eq!(lent.len(), count);
        let value = vec![b'x'; length];
        for x in &mut lent {
            for id in 0..2 {
                session::evaluate::set(&mut **x, conf::VariableId(id), &value).unwrap();
            }
        }
        lent.into_iter().for_each(|x| worker.give_back(x));
        let idle = worker.idle.borrow();
        let memory: usize = idle.iter().map(|(x, _)| x.memory()).sum();
        assert_eq!(memory, worker.idle_memory.get());
        (idle.len(), memory)
    }

    #[test]
    fn memory_of_variables_is_limited() {
        assert_eq!(kept(100, 100).0, 100);
        assert_eq!(kept(3, EXCHANGE_MEMORY_MAX), (0, 0));
        let (count, memory) = kept(1000, EXCHANGE_MEMORY_MAX / 8);
        assert!(memory <= EXCHANGES_MEMORY_MAX, "{memory}");
        assert!(memory > EXCHANGES_MEMORY_MAX / 2 && count > 0, "{count} {memory}");
    }

    #[test]
    fn exchanges_of_a_burst_are_freed_after_a_while() {
        let site = site(VALUES);
        let worker =
            net::run(async { WorkerContext::new(site.generation.clone(), false) }).unwrap();
        let client = Rc::new(Client::new(1, None, SocketProbe::NONE, 0));
        let lent: Vec<_> = (0..300).filter_map(|_| worker.lend(&client)).collect();
        lent.into_iter().for_each(|x| worker.give_back(x));
        let burst = worker.idle_memory.get();
        assert_eq!((worker.shrink(), worker.idle.borrow().len()), (0, 300));
        let freed: usize = (0..12).map(|_| worker.shrink()).sum();
        assert_eq!(worker.idle_memory.get(), burst - freed);
        assert!(worker.idle.borrow().len() < 10);
    }

    #[test]
    fn memory_of_lent_exchanges_is_not_counted() {
        let site = site(VALUES);
        let worker =
            net::run(async { WorkerContext::new(site.generation.clone(), false) }).unwrap();
        let client = Rc::new(Client::new(1, None, SocketProbe::NONE, 0));
        for _ in 0..3 {
            let x = worker.lend(&client).unwrap();
            assert_eq!(worker.idle_memory.get(), 0);
            worker.give_back(x);
            assert!(worker.idle_memory.get() > 0);
        }
    }
}
