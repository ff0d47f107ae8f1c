//! What a worker has for `stream {}`: the newest generation, and the connections under way.

use std::cell::RefCell;
use std::rc::Rc;

use ::session::Client;
use ::upstream::Discovery;
use net::{Accepted, ConnectionTracker, SocketProbe};
use observe::WorkerCounters;

use crate::serve::{HeldConnection, serve};
use crate::site::StreamGeneration;

/// One worker's sessions.
pub struct StreamWorker {
    generation: RefCell<Rc<StreamGeneration>>,
    /// Names of servers that are looked up as long as the generation is the newest.
    discovery: RefCell<Discovery>,
    counts: &'static WorkerCounters,
    tracker: Rc<ConnectionTracker>,
}

impl StreamWorker {
    /// A worker that serves this configuration.
    pub fn new(generation: Rc<StreamGeneration>) -> Rc<Self> {
        let discovery = RefCell::new(Discovery::of(&generation.groups));
        let generation = RefCell::new(generation);
        Rc::new(Self {
            generation,
            discovery,
            counts: WorkerCounters::of_worker(),
            tracker: Rc::default(),
        })
    }

    /// Serves a new connection; `debug`: all its messages are logged. One that came by a socket
    /// which the newest configuration does not have is closed.
    pub fn start(&self, accepted: Accepted, debug: bool) {
        let Accepted { stream, peer, slot, permit } = accepted;
        let generation = self.generation.borrow().clone();
        let held = HeldConnection { _open: self.counts.accept(), _permit: permit };
        let mut client =
            Client::new(observe::connection_number(), peer, SocketProbe::new(&stream), slot);
        client.debug = debug;
        let number = generation.number;
        if let Some(server) = generation.listen(slot).map(|listen| listen.names.default) {
            let client = Rc::new(client);
            self.tracker.spawn(number, serve(generation, server, client, stream, held));
        }
    }

    /// From now on new connections are served by this configuration; those under way keep theirs.
    pub fn replace(&self, generation: Rc<StreamGeneration>) {
        self.discovery.replace(Discovery::of(&generation.groups));
        self.generation.replace(generation);
    }

    /// Ends the connections accepted under earlier generations than this.
    pub fn cut_before(&self, generation: u64) {
        self.tracker.cut_before(generation);
    }

    /// Ready once no session is left.
    pub async fn leave(&self) {
        self.tracker.empty().await;
    }

    /// Whether the newest configuration has this listening socket.
    pub fn listens(&self, slot: u32) -> bool {
        self.generation.borrow().listen(slot).is_some()
    }
}
