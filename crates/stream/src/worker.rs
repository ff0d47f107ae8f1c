//! The `stream {}` part of a worker: the newest generation, and the open connections.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::time::Duration;

use ::session::{
    AdmitClient, AdmittedClient, Client, LocalFuture, PassTargets, PassedConnection, SiteShare,
    SubsystemSite, SubsystemWorker,
};
use metrics::WorkerCounters;
use net::{
    Accepted, Address, ConnectionTracker, DatagramSet, ReceivedDatagram, SocketOptions,
    SocketProbe, UdpListener,
};
use observe::{Errno, Level};

use crate::datagrams::{BoundFlow, serve_datagrams};
use crate::flow::{UdpPort, UdpResources};
use crate::serve::{HeldConnection, serve};
use crate::site::{StreamGeneration, StreamSite};

/// The `stream {}` part of a worker.
pub struct StreamWorker {
    generation: RefCell<Rc<StreamGeneration>>,
    counts: WorkerCounters<'static>,
    tracker: Rc<ConnectionTracker>,
    /// State that UDP sessions share, created when the first socket is opened.
    udp: OnceCell<Rc<UdpResources>>,
    /// The sockets that datagrams are received from.
    ports: RefCell<Vec<Rc<UdpPort>>>,
    /// The sockets that `pass` can name.
    targets: Weak<dyn PassTargets>,
}

/// The most batches of datagrams before others get their turn.
const BATCHES_PER_TURN: u32 = 8;
/// The cost of starting a session in addition to receiving its datagram, counted as bytes read.
const COST_OF_SESSION: usize = 4096;
/// The pause of receiving after a system error.
const FAILED_PAUSE: Duration = Duration::from_millis(500);

impl StreamWorker {
    /// A worker whose `pass` only reaches its own sockets.
    pub fn new(generation: Rc<StreamGeneration>) -> Rc<Self> {
        Rc::new_cyclic(|own: &Weak<Self>| Self::with_targets(generation, own.clone()))
    }

    /// A worker whose `pass` reaches the sockets of `targets`.
    fn with_targets(generation: Rc<StreamGeneration>, targets: Weak<dyn PassTargets>) -> Self {
        generation.start();
        Self {
            generation: RefCell::new(generation),
            counts: WorkerCounters::of_worker(),
            tracker: Rc::default(),
            udp: OnceCell::new(),
            ports: RefCell::default(),
            targets,
        }
    }

    /// Serves a new connection; `debug` logs all its messages. If the newest configuration lacks
    /// the socket that accepted it, it is closed.
    pub fn start(&self, accepted: Accepted, debug: bool) {
        let Accepted { stream, peer, slot, permit } = accepted;
        let mut client =
            Client::new(observe::connection_number(), peer, SocketProbe::new(&stream), slot);
        client.debug = debug;
        let (open, received) = (self.counts.accept(), Vec::new());
        PassTargets::take_over(self, PassedConnection { client, stream, received, open, permit });
    }

    /// Makes this the configuration of new connections; open ones keep theirs.
    pub fn replace(&self, generation: Rc<StreamGeneration>) {
        generation.start();
        self.close_ports(&generation);
        self.generation.replace(generation);
    }

    /// Ends the sessions of sockets that a configuration lacks, so that the address of such a
    /// socket becomes free.
    fn close_ports(&self, generation: &StreamGeneration) {
        let mut ports = self.ports.borrow_mut();
        let before = ports.len();
        ports.retain(|port| {
            let stays = generation.listen(port.slot).is_some();
            if !stays {
                port.close();
            }
            stays
        });
        if ports.len() < before {
            self.tracker.wake_all();
        }
    }

    /// Receives the datagrams of a socket until the task is stopped. `admit` decides whether a new
    /// client may have a session.
    pub async fn receive(
        self: Rc<Self>,
        socket: OwnedFd,
        slot: u32,
        admit: impl Fn(IpAddr) -> Option<AdmittedClient>,
    ) {
        let port = match self.open_port(socket, slot) {
            Ok(port) => port,
            Err(error) => return alert("epoll_ctl()", &error),
        };
        let batch = port.resources.batch.clone();
        loop {
            for _ in 0..BATCHES_PER_TURN {
                match port.listener.receive(&batch).await {
                    Ok(batch) => batch.iter().for_each(|one| self.take(&port, &one, &admit)),
                    Err(error) => {
                        alert("recvmmsg()", &error);
                        net::sleep(FAILED_PAUSE).await;
                    }
                }
            }
            net::yield_now().await;
        }
    }

    fn open_port(&self, socket: OwnedFd, slot: u32) -> io::Result<Rc<UdpPort>> {
        let resources = match self.udp.get() {
            Some(resources) => resources.clone(),
            None => {
                let (servers, batch) = (DatagramSet::new()?, Rc::default());
                net::spawn(servers.clone().attend(Rc::clone(&batch)));
                self.udp.get_or_init(|| Rc::new(UdpResources { servers, batch })).clone()
            }
        };
        let port = UdpPort::new(UdpListener::new(socket)?, slot, resources);
        self.ports.borrow_mut().push(port.clone());
        Ok(port)
    }

    /// Gives a datagram to its session, or begins one.
    fn take(
        &self,
        port: &Rc<UdpPort>,
        datagram: &ReceivedDatagram<'_>,
        admit: &impl Fn(IpAddr) -> Option<AdmittedClient>,
    ) {
        if port.deliver(datagram) {
            return;
        }
        let generation = self.generation.borrow().clone();
        let Some(listen) = generation.listen(port.slot) else { return };
        let Address::Udp(at) = listen.address else { return };
        let local = datagram.local.map_or(at, |ip| SocketAddr::new(ip, at.port()));
        if datagram.peer.port() == 0 || datagram.peer == local {
            // A forged sender: it cannot be answered, or is the server's own address.
            return;
        }
        let Some(AdmittedClient { permit, debug }) = admit(datagram.peer.ip()) else {
            return self.counts.refuse();
        };
        let held = HeldConnection { open: self.counts.accept(), permit };
        let number = observe::connection_number();
        let mut client = Client::over_udp(number, datagram.peer, local, port.slot);
        client.debug = debug;
        let server = listen.names.default;
        let flow = port.begin(datagram, generation.server(server).datagrams_max);
        let flow = BoundFlow(flow);
        net::spend(COST_OF_SESSION);
        let (client, len) = (Rc::new(client), datagram.payload.len());
        let number = generation.number;
        self.tracker.spawn(number, serve_datagrams(generation, server, client, flow, len, held));
    }

    /// Ends connections of generations before this one.
    pub fn cut_before(&self, generation: u64) {
        self.tracker.cut_before(generation);
    }

    /// Whether there is no session.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Ready once no session is left.
    pub async fn leave(&self) {
        self.tracker.empty().await;
    }
}

impl SubsystemSite for StreamSite {
    fn block(&self) -> &'static str {
        "stream"
    }

    fn sockets(&self) -> Vec<(&Address, &SocketOptions)> {
        self.listens.iter().map(|listen| (&listen.address, &listen.options)).collect()
    }

    fn upstream_groups(&self) -> &[std::sync::Arc<::upstream::Group>] {
        &self.groups
    }

    fn shown(&self) -> &session::status::SubsystemStatus {
        &self.status
    }

    fn start(&self, share: SiteShare, targets: Weak<dyn PassTargets>) -> Rc<dyn SubsystemWorker> {
        Rc::new(StreamWorker::with_targets(share.generation(), targets))
    }
}

impl SubsystemWorker for StreamWorker {
    fn replace(self: Rc<Self>, share: SiteShare) {
        StreamWorker::replace(&self, share.generation());
    }

    fn start(self: Rc<Self>, accepted: Accepted, debug: bool) {
        StreamWorker::start(&self, accepted, debug);
    }

    fn take_over(self: Rc<Self>, passed: PassedConnection) {
        PassTargets::take_over(&*self, passed);
    }

    fn receive(self: Rc<Self>, socket: OwnedFd, slot: u32, admit: AdmitClient) -> LocalFuture {
        Box::pin(StreamWorker::receive(self, socket, slot, admit))
    }

    fn slot_at(&self, to: &Address) -> Option<u32> {
        PassTargets::slot_at(self, to)
    }

    fn cut_before(&self, generation: u64) {
        StreamWorker::cut_before(self, generation);
    }

    fn leave(self: Rc<Self>) -> LocalFuture {
        Box::pin(async move { StreamWorker::leave(&self).await })
    }
}

impl PassTargets for StreamWorker {
    fn slot_at(&self, to: &Address) -> Option<u32> {
        self.generation.borrow().slot_at(to)
    }

    fn take_over(&self, passed: PassedConnection) {
        let PassedConnection { client, stream, received, open, permit } = passed;
        let generation = self.generation.borrow().clone();
        let number = generation.number;
        if let Some(server) = generation.listen(client.listen).map(|listen| listen.names.default) {
            let (client, held) = (Rc::new(client), HeldConnection { open, permit });
            let targets = self.targets.clone();
            let served = serve(generation, server, client, stream, received, held, targets);
            self.tracker.spawn(number, served);
        }
    }
}

fn alert(call: &str, error: &io::Error) {
    observe::log(Level::Alert, format_args!("{call} failed{}", Errno(error)));
}
