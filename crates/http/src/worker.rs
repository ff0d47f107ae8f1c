//! What a worker has for HTTP: the newest generation, and exchanges to lend.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;

use net::{Accepted, Listener, Probe};
use observe::Counts;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::h1;
use crate::site::Generation;

/// Exchanges kept for later.
const EXCHANGES_KEPT_MAX: usize = 256;

/// Says whether a client's connections are debugged, by its address; `None` on Unix sockets.
type Debugged = Box<dyn Fn(Option<IpAddr>) -> bool>;

/// One worker's HTTP.
pub struct Worker {
    generation: RefCell<Rc<Generation>>,
    idle: RefCell<Vec<Box<Exchange>>>,
    /// Whose connections are debugged; `None`: nobody's.
    debugged: RefCell<Option<Debugged>>,
    /// What this worker counts for `stub_status`.
    pub(crate) counts: &'static Counts,
    draining: Cell<bool>,
}

impl Worker {
    /// A worker that serves this configuration.
    pub fn new(generation: Rc<Generation>) -> Rc<Self> {
        net::at_turn_end(observe::end_turn);
        Rc::new(Self {
            generation: RefCell::new(generation),
            idle: RefCell::default(),
            debugged: RefCell::default(),
            counts: Counts::of_worker(),
            draining: Cell::new(false),
        })
    }

    /// Logs everything about the connections of these clients from now on: `debug_connection`.
    pub fn debug_connections(&self, whose: impl Fn(Option<IpAddr>) -> bool + 'static) {
        *self.debugged.borrow_mut() = Some(Box::new(whose));
    }

    /// Accepts connections for the listening socket number `listen`, until the task is dropped.
    pub async fn accept(self: Rc<Self>, listener: Listener, listen: u32) {
        loop {
            match listener.accept().await {
                Ok(accepted) => self.start(accepted, listen),
                Err(_) => net::sleep(std::time::Duration::from_millis(500)).await,
            }
        }
    }

    /// Serves a connection that came by the listening socket number `listen`.
    pub fn start(self: &Rc<Self>, accepted: Accepted, listen: u32) {
        let open = self.counts.accept();
        let (serial, socket) = (observe::connection_number(), Probe::new(&accepted.stream));
        let peer = accepted.peer;
        let mut client = Client::new(serial, peer, socket, listen);
        let debugged = self.debugged.borrow();
        client.debug = debugged.as_ref().is_some_and(|whose| whose(peer.map(|peer| peer.ip())));
        let client = Rc::new(client);
        net::spawn(h1::serve(self.clone(), client, accepted.stream, open));
    }

    /// From now on replies close their connections, and those that wait for another request are
    /// closed at once, but for `keepalive_min_timeout`.
    pub fn drain(&self) {
        self.draining.set(true);
        net::wake_all();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// The newest configuration.
    pub(crate) fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// An exchange for the next request of a connection.
    pub(crate) fn lend(&self, client: &Rc<Client>) -> Box<Exchange> {
        let generation = self.generation.borrow();
        let mut exchange = self
            .idle
            .borrow_mut()
            .pop()
            .unwrap_or_else(|| Box::new(Exchange::new(client.clone(), generation.clone())));
        exchange.renew(client, &generation);
        exchange
    }

    /// Takes an exchange back.
    pub(crate) fn give_back(&self, mut exchange: Box<Exchange>) {
        exchange.retire();
        let mut idle = self.idle.borrow_mut();
        if idle.len() < EXCHANGES_KEPT_MAX {
            idle.push(exchange);
        }
    }
}
