//! A subsystem as the program sees it: a compiled configuration with listening sockets, and what
//! serves it in one worker.
//!
//! The program has a list of subsystems and calls them all through this interface. Deliberately
//! absent: how a configuration is read and compiled, and the contents of connections.

use std::any::Any;
use std::future::Future;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use ::upstream::Group;
use net::{Accepted, Address, ConnectionPermit, SocketOptions};

use crate::generation::{Configuration, GenerationEnd, ListenerSlots, WorkerGeneration};
use crate::passed::{PassTargets, PassedConnection};
use crate::status::published::SubsystemStatus;

/// The compiled configuration of a subsystem.
pub trait SubsystemSite: Any + Send + Sync {
    /// The name of its block.
    fn block(&self) -> &'static str;
    /// Its listening sockets, in the order of [`Configuration::listens`].
    fn sockets(&self) -> Vec<(&Address, &SocketOptions)>;
    /// The groups of upstream servers.
    fn upstream_groups(&self) -> &[Arc<Group>];
    /// What is shown of it.
    fn shown(&self) -> &SubsystemStatus;
    /// Starts to serve it in this worker. `targets` are the sockets of all subsystems.
    fn start(&self, share: SiteShare, targets: Weak<dyn PassTargets>) -> Rc<dyn SubsystemWorker>;
}

/// One worker's share of a site and its generation.
pub struct SiteShare {
    /// The site.
    pub site: Arc<dyn SubsystemSite>,
    /// The number of the generation.
    pub number: u64,
    /// Which of the program's listening sockets are the site's.
    pub slots: ListenerSlots,
    /// Held until the worker no longer uses the generation.
    pub end: GenerationEnd,
}

/// A subsystem in one worker.
pub trait SubsystemWorker {
    /// Serves new connections with this generation. Existing ones finish in their own.
    fn replace(self: Rc<Self>, share: SiteShare);

    /// Serves a new connection; `debug`: all its messages are logged. One that came by a socket
    /// which the newest generation does not have is closed.
    fn start(self: Rc<Self>, accepted: Accepted, debug: bool);

    /// Serves a connection that another listening socket has accepted.
    fn take_over(self: Rc<Self>, passed: PassedConnection);

    /// Receives the datagrams of a socket until the future is dropped. Without this, a subsystem
    /// has no such sockets.
    fn receive(self: Rc<Self>, socket: OwnedFd, slot: u32, admit: AdmitClient) -> LocalFuture {
        let _ = (socket, slot, admit);
        Box::pin(async {})
    }

    /// The slot of the listening socket that gets connections to this address.
    fn slot_at(&self, to: &Address) -> Option<u32>;

    /// Ends connections of earlier generations than this.
    fn cut_before(&self, generation: u64);

    /// Ends a few idle connections, as far as there are any, in favour of new ones.
    fn make_room(self: Rc<Self>) {}

    /// Clients are to go elsewhere, or no longer, while they are served as before. Connections say
    /// so as far as their protocol can.
    fn set_draining(self: Rc<Self>, is_draining: bool) {
        let _ = is_draining;
    }

    /// Ends idle connections now, the others when they are done. Ready once none is left.
    fn leave(self: Rc<Self>) -> LocalFuture;
}

/// A future of one worker.
pub type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Says whether a new client may have a session over UDP.
pub type AdmitClient = Box<dyn Fn(IpAddr) -> Option<AdmittedClient>>;

/// A client that may have a session over UDP.
pub struct AdmittedClient {
    /// Counts the session as one of the worker's connections until dropped.
    pub permit: ConnectionPermit,
    /// Whether all its messages are logged.
    pub debug: bool,
}

impl SiteShare {
    /// Starts to serve the site in this worker.
    pub fn start(self, targets: Weak<dyn PassTargets>) -> Rc<dyn SubsystemWorker> {
        let site = self.site.clone();
        site.start(self, targets)
    }

    /// The worker's generation of a site of type `C`.
    pub fn generation<C: Configuration + Send + Sync>(self) -> Rc<WorkerGeneration<C>> {
        let site: Arc<dyn Any + Send + Sync> = self.site;
        let site = site.downcast().expect("a worker gets the sites of its own subsystem");
        WorkerGeneration::with_slots(site, self.number, self.slots, self.end)
    }
}
