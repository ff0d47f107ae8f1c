//! Accepts a worker's connections: from the kernel, and from other workers. Each goes to the
//! subsystem that owns its listening socket.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use net::{AcceptBalancer, Accepted, Address, AllFull, Arrival, Listener, Mailbox};
use observe::{Errno, Level};
use session::{AdmittedClient, PassTargets, PassedConnection, SiteShare, SubsystemWorker};

use crate::config_snapshot::SlotOwners;
use crate::log::alert;
use crate::settings::{DebugClient, ProgramSettings};

/// Settings for the connections of one worker.
#[derive(Clone, Default)]
pub struct AcceptLimits {
    pub worker_connections: usize,
    /// The pause of accepting when there are no descriptors left.
    pub accept_pause: Duration,
    /// The clients whose connections are logged at level debug.
    pub debug: Arc<[DebugClient]>,
}

impl AcceptLimits {
    pub fn of(settings: &ProgramSettings) -> Self {
        Self {
            worker_connections: settings.worker_connections,
            accept_pause: Duration::from_millis(settings.accept_mutex_delay_ms),
            debug: settings.debug_connections.clone().into(),
        }
    }
}

/// The most connections that a leaving worker takes from the queue of a socket.
const QUEUED_MAX: usize = 4096;
/// How often a worker checks for the configuration of a connection that it received early.
const EARLY_LOOKS_MAX: u32 = 1000;
/// The pause between these checks.
const EARLY_PAUSE: Duration = Duration::from_millis(1);

/// Accepts the connections of one worker.
pub struct Acceptor {
    balancer: Rc<AcceptBalancer>,
    /// The subsystems, in the order of the program's list.
    subsystems: Vec<Rc<dyn SubsystemWorker>>,
    /// The owner of each slot in the newest configuration.
    owners: RefCell<SlotOwners>,
    limits: RefCell<AcceptLimits>,
    reuse_told_s: Cell<Option<u64>>,
    full_told_s: Cell<Option<u64>>,
    memory_told_s: Cell<Option<u64>>,
}

impl Acceptor {
    /// Starts the subsystems of this worker with their sites.
    pub fn new(balancer: Rc<AcceptBalancer>, sites: Vec<SiteShare>) -> Rc<Self> {
        Rc::new_cyclic(|own: &Weak<Self>| Self {
            balancer,
            subsystems: sites.into_iter().map(|site| site.start(own.clone())).collect(),
            owners: RefCell::default(),
            limits: RefCell::default(),
            reuse_told_s: Cell::default(),
            full_told_s: Cell::default(),
            memory_told_s: Cell::default(),
        })
    }

    pub fn subsystems(&self) -> &[Rc<dyn SubsystemWorker>] {
        &self.subsystems
    }

    /// Sets the owners of slots, after the sites of subsystems were replaced.
    pub fn set_owners(&self, owners: SlotOwners) {
        self.owners.replace(owners);
    }

    /// Sets the limits of all connections from now on.
    pub fn set_limits(&self, limits: AcceptLimits) {
        self.balancer.set_limit(limits.worker_connections);
        self.limits.replace(limits);
    }

    /// Accepts no more connections from other workers.
    pub fn close(&self) {
        self.balancer.close();
    }

    /// Whether there are no connections, and none on their way here.
    pub fn is_empty(&self) -> bool {
        self.balancer.taken() == 0
    }

    /// Accepts from a listening socket until the task is stopped.
    pub async fn accept(self: Rc<Self>, listener: Rc<Listener>, slot: u32) {
        loop {
            match listener.accept().await {
                Ok((fd, peer)) => self.take(Arrival { fd, peer, slot }).await,
                Err(error) => {
                    let text = format_args!("accept4() failed{}", Errno(&error));
                    observe::log(level(&error), text);
                    let pause = self.limits.borrow().accept_pause;
                    net::sleep(pause).await;
                }
            }
        }
    }

    /// Starts the connections that wait in the queue of a socket which is about to be closed: the
    /// kernel would reset them.
    pub fn accept_queued(&self, listener: &Listener, slot: u32) {
        let queued = std::iter::from_fn(|| listener.accept_queued());
        for (fd, peer) in queued.take(QUEUED_MAX) {
            let accepted = self.balancer.assign(Arrival { fd, peer, slot });
            accepted.ok().flatten().into_iter().for_each(|accepted| self.start(accepted));
        }
    }

    /// Receives datagrams from a socket until the task is stopped. They cannot be passed to another
    /// worker, because the kernel delivers later ones of the same client here.
    pub async fn receive(self: Rc<Self>, socket: OwnedFd, slot: u32) {
        let owner = self.owner(slot);
        owner.receive(socket, slot, Box::new(move |peer| self.admit(peer))).await;
    }

    /// Whether a client may have a session over UDP.
    fn admit(&self, peer: IpAddr) -> Option<AdmittedClient> {
        if self.lacks_memory() {
            return None;
        }
        let permit = self.balancer.assign_own();
        if permit.is_none() && is_new_second(&self.full_told_s) {
            let limit = self.limits.borrow().worker_connections;
            alert!("{limit} worker_connections are not enough");
        }
        Some(AdmittedClient { permit: permit?, debug: self.debugs(Some(peer)) })
    }

    fn debugs(&self, peer: Option<IpAddr>) -> bool {
        self.limits.borrow().debug.iter().any(|client| client.is(peer))
    }

    /// Serves the connections that other workers pass to this one.
    pub async fn adopt(self: Rc<Self>, mut handed: Mailbox<Arrival>) {
        while let Some(arrival) = handed.next().await {
            match self.listens(arrival.slot) {
                true => self.start(self.balancer.adopt(arrival)),
                false => drop(net::spawn(self.clone().adopt_early(arrival))),
            }
        }
    }

    /// Whether the newest configuration has this listening socket.
    fn listens(&self, slot: u32) -> bool {
        self.owners.borrow().has(slot)
    }

    /// The subsystem of a listening socket. A socket that the newest configuration lacks has no
    /// owner; any subsystem closes its connections.
    fn owner(&self, slot: u32) -> Rc<dyn SubsystemWorker> {
        let owner = self.owners.borrow().owner(slot).unwrap_or(0);
        self.subsystems[owner].clone()
    }

    /// Accepts a connection of a socket that this worker's configuration lacks, because the worker
    /// that passed it on has received a newer configuration first.
    async fn adopt_early(self: Rc<Self>, arrival: Arrival) {
        let mut looks = 0;
        while looks < EARLY_LOOKS_MAX && !self.listens(arrival.slot) {
            net::sleep(EARLY_PAUSE).await;
            looks += 1;
        }
        self.start(self.balancer.adopt(arrival));
    }

    /// Assigns a connection to a worker. If all are full, idle connections are closed first.
    async fn take(&self, arrival: Arrival) {
        let AllFull { limit, arrival } = match self.balancer.assign(arrival) {
            Ok(accepted) => return accepted.into_iter().for_each(|accepted| self.start(accepted)),
            Err(full) => full,
        };
        self.log_reuse(limit);
        self.subsystems.iter().for_each(|subsystem| subsystem.clone().make_room());
        net::yield_now().await;
        match self.balancer.assign(arrival) {
            Ok(accepted) => accepted.into_iter().for_each(|accepted| self.start(accepted)),
            Err(AllFull { limit, .. }) => alert!("{limit} worker_connections are not enough"),
        }
    }

    /// Logs that connections are reused; as in nginx, once a second.
    fn log_reuse(&self, limit: usize) {
        if is_new_second(&self.reuse_told_s) {
            let what = "worker_connections are not enough, reusing connections";
            observe::log(Level::Warn, format_args!("{limit} {what}"));
        }
    }

    /// Whether memory is too scarce for new connections, because open ones need it.
    fn lacks_memory(&self) -> bool {
        let is_scarce = net::memory::is_scarce();
        if is_scarce && is_new_second(&self.memory_told_s) {
            alert!("malloc() failed: new connections are closed");
        }
        is_scarce
    }

    fn start(&self, accepted: Accepted) {
        if self.lacks_memory() {
            return;
        }
        let debug = self.debugs(accepted.peer.map(|peer| peer.ip()));
        self.owner(accepted.slot).start(accepted, debug);
    }
}

impl PassTargets for Acceptor {
    fn slot_at(&self, to: &Address) -> Option<u32> {
        self.subsystems.iter().find_map(|subsystem| subsystem.slot_at(to))
    }

    fn take_over(&self, passed: PassedConnection) {
        self.owner(passed.client.listen).take_over(passed);
    }
}

/// Whether the last call was in another second.
fn is_new_second(last_s: &Cell<Option<u64>>) -> bool {
    let second = net::clock::now_ms() / 1000;
    last_s.replace(Some(second)) != Some(second)
}

/// The level of an error: the administrator can fix a lack of descriptors; others are alerts.
fn level(error: &io::Error) -> Level {
    match error.raw_os_error() {
        Some(net::listening::EMFILE | net::listening::ENFILE) => Level::Crit,
        _ => Level::Alert,
    }
}

#[cfg(test)]
mod tests;
