//! The workers of this process: threads that accept and serve connections.
//!
//! The control thread never serves clients. It sends the workers a message about a new generation;
//! each worker switches to it between two requests, and reports when it has ended.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use metrics::WorkerCounters;
use net::{BalancerHandle, Listener, Mailbox, MailboxSender, Task, listening};
use observe::Errno;
use session::{GenerationEnd, ListenerSlots, SiteShare, SubsystemWorker};

use crate::acceptor::{AcceptLimits, Acceptor};
use crate::config_snapshot::SlotOwners;
use crate::event::{Event, later};
use crate::log::{alert, emerg};
use crate::name::name;
use crate::settings::ProgramSettings;
use crate::subsystems::Sites;

pub struct NextGeneration {
    /// Its number, larger than that of the last.
    pub number: u64,
    pub sites: Sites,
    pub owners: SlotOwners,
    /// Sockets that the workers do not have yet, with their slots.
    pub sockets: Vec<(u32, OwnedFd)>,
    /// The limits of each worker's connections.
    pub limits: AcceptLimits,
    /// How long they may continue after the next generation or a shutdown has started; zero:
    /// without a limit.
    pub shutdown_timeout: Duration,
}

/// The interval at which a worker that is about to end checks for connections passed to it.
const HANDED_OVER_PAUSE: Duration = Duration::from_millis(1);

pub struct Workers {
    workers: Vec<MailboxSender<WorkerOrder>>,
    /// The slots whose sockets the workers have.
    slots: HashSet<u32>,
    events: MailboxSender<Event>,
    shutdown_timeout: Duration,
}

enum WorkerOrder {
    Serve(Share),
    /// Connections accepted before that generation end now.
    Cut(u64),
    /// Clients are to go elsewhere, or no longer.
    SetDraining(bool),
    /// Log files were reopened.
    Reopened,
    /// An earlier generation is over.
    GenerationOver,
    Leave,
    Stop,
}

/// One worker's part of a generation.
struct Share {
    /// By subsystem.
    sites: Vec<SiteShare>,
    owners: SlotOwners,
    sockets: Vec<(u32, OwnedFd)>,
    limits: AcceptLimits,
}

/// Reports the end of a generation when the last worker drops it.
struct EndOf {
    number: u64,
    events: MailboxSender<Event>,
}

impl Drop for EndOf {
    fn drop(&mut self) {
        self.events.send(Event::GenerationOver(self.number));
    }
}

impl Workers {
    /// Starts the workers; they wait for something to serve.
    pub fn start(settings: &ProgramSettings, events: &MailboxSender<Event>) -> Self {
        let mut workers = Self {
            workers: Vec::new(),
            slots: HashSet::new(),
            events: events.clone(),
            shutdown_timeout: Duration::ZERO,
        };
        net::memory::hold_reserve();
        let handles = net::balancer_handles(settings.worker_processes.max(1));
        for (number, handle) in handles.into_iter().enumerate() {
            let affinity = settings.worker_cpu_affinity.as_ref().and_then(|all| all.of(number));
            if let Err(error) = workers.start_worker(number, handle, affinity) {
                emerg!("worker {number} cannot start{}", Errno(&error));
            }
        }
        workers
    }

    fn start_worker(
        &mut self,
        number: usize,
        handle: BalancerHandle,
        affinity: Option<Vec<usize>>,
    ) -> std::io::Result<()> {
        let (sender, orders) = net::mailbox();
        let (own, events) = (sender.clone(), self.events.clone());
        let work = move || {
            set_affinity(affinity);
            if let Err(error) = net::run(WorkerThread::work(number, handle, orders, own)) {
                emerg!("worker {number} cannot run{}", Errno(&error));
            }
            observe::flush_all();
            events.send(Event::WorkerLeft);
        };
        std::thread::Builder::new().name(thread_name(number)).spawn(work)?;
        self.workers.push(sender);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Lets the workers serve another generation.
    pub fn serve(&mut self, next: NextGeneration) {
        let NextGeneration { number, sites, owners, sockets, limits, shutdown_timeout } = next;
        self.slots.retain(|slot| owners.has(*slot));
        self.slots.extend(sockets.iter().map(|(slot, _)| *slot));
        let end: GenerationEnd = Arc::new(EndOf { number, events: self.events.clone() });
        for (worker, sockets) in self.workers.iter().zip(deal(sockets, self.workers.len())) {
            let sites = sites.shared().into_iter().zip(owners.of_subsystems());
            let share = |(site, slots): (_, &ListenerSlots)| {
                let (slots, end) = (slots.clone(), end.clone());
                SiteShare { site, number, slots, end }
            };
            let (sites, owners, limits) =
                (sites.map(share).collect(), owners.clone(), limits.clone());
            worker.send(WorkerOrder::Serve(Share { sites, owners, sockets, limits }));
        }
        let timeout = std::mem::replace(&mut self.shutdown_timeout, shutdown_timeout);
        if !timeout.is_zero() {
            later(&self.events, timeout, Event::CutBefore(number));
        }
    }

    /// Whether the workers have sockets of a slot.
    pub fn has(&self, slot: u32) -> bool {
        self.slots.contains(&slot)
    }

    /// Ends the connections accepted before a generation.
    pub fn cut_before(&self, number: u64) {
        self.send(|| WorkerOrder::Cut(number));
    }

    /// Makes the workers tell clients to go elsewhere, or no longer.
    pub fn set_draining(&self, is_draining: bool) {
        self.send(|| WorkerOrder::SetDraining(is_draining));
    }

    /// Makes the workers use reopened log files.
    pub fn reopened(&self) {
        self.send(|| WorkerOrder::Reopened);
    }

    /// Makes the workers close log files that only ended generations needed.
    pub fn generation_over(&self) {
        self.send(|| WorkerOrder::GenerationOver);
    }

    /// Makes the workers end after their last reply, or after the shutdown timeout.
    pub fn leave(&self) {
        self.send(|| WorkerOrder::Leave);
        if !self.shutdown_timeout.is_zero() {
            later(&self.events, self.shutdown_timeout, Event::CutBefore(u64::MAX));
        }
    }

    /// Makes the workers end immediately.
    pub fn stop(&self) {
        self.send(|| WorkerOrder::Stop);
    }

    fn send(&self, order: impl Fn() -> WorkerOrder) {
        self.workers.iter().for_each(|worker| worker.send(order()));
    }
}

/// The worker's name in ps -L and top -H; the kernel keeps 15 bytes.
fn thread_name(number: usize) -> String {
    let word = name().word;
    if number < 100 { format!("{word} worker {number}") } else { format!("{word} work {number}") }
}

fn set_affinity(processors: Option<Vec<usize>>) {
    if let Some(processors) = processors
        && let Err(error) = net::process::set_affinity(&processors)
    {
        alert!("sched_setaffinity() failed{}", Errno(&error));
    }
}

/// Distributes the sockets of each slot among workers in turn.
fn deal(sockets: Vec<(u32, OwnedFd)>, workers: usize) -> Vec<Vec<(u32, OwnedFd)>> {
    let mut parts: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
    let mut turns: HashMap<u32, usize> = HashMap::new();
    for (slot, socket) in sockets {
        let turn = turns.entry(slot).or_default();
        parts[*turn % workers].push((slot, socket));
        *turn += 1;
    }
    parts
}

/// A worker, on its own thread.
struct WorkerThread {
    acceptor: Rc<Acceptor>,
    accept_tasks: Vec<AcceptTask>,
}

/// The task that accepts from a socket.
struct AcceptTask {
    slot: u32,
    task: Task,
    /// `None` for a UDP socket.
    listener: Option<Rc<Listener>>,
}

impl WorkerThread {
    /// Processes orders until the order to stop. After leaving, it sends itself that order.
    async fn work(
        number: usize,
        handle: BalancerHandle,
        mut orders: Mailbox<WorkerOrder>,
        own: MailboxSender<WorkerOrder>,
    ) {
        let (balancer, handed) = handle.begin();
        let Some(WorkerOrder::Serve(mut first)) = orders.next().await else { return };
        net::tls::warm_up();
        count_turns(number);
        let acceptor = Acceptor::new(balancer, std::mem::take(&mut first.sites));
        net::spawn(acceptor.clone().adopt(handed));
        let mut worker = Self { acceptor, accept_tasks: Vec::new() };
        worker.set_sockets(first);
        while let Some(order) = orders.next().await {
            match order {
                WorkerOrder::Serve(mut share) => {
                    net::tls::warm_up();
                    count_turns(number);
                    let sites = std::mem::take(&mut share.sites);
                    worker.subsystems().zip(sites).for_each(|(one, site)| one.replace(site));
                    worker.set_sockets(share);
                }
                WorkerOrder::Cut(number) => {
                    worker.subsystems().for_each(|one| one.cut_before(number));
                }
                WorkerOrder::SetDraining(is_draining) => {
                    worker.subsystems().for_each(|one| one.set_draining(is_draining));
                }
                WorkerOrder::Reopened => observe::flush_all(),
                WorkerOrder::GenerationOver => forget_old(),
                WorkerOrder::Leave => worker.leave(own.clone()),
                WorkerOrder::Stop => return,
            }
        }
    }

    fn subsystems(&self) -> impl Iterator<Item = Rc<dyn SubsystemWorker>> {
        self.acceptor.subsystems().iter().cloned()
    }

    /// Starts accepting from new sockets, and stops accepting from those that the generation lacks.
    fn set_sockets(&mut self, share: Share) {
        let Share { owners, sockets, limits, .. } = share;
        self.acceptor.set_limits(limits);
        self.acceptor.set_owners(owners.clone());
        let (kept, closed) = self.accept_tasks.drain(..).partition(|task| owners.has(task.slot));
        self.accept_tasks = kept;
        closed.iter().for_each(|closed: &AcceptTask| closed.task.stop());
        for (slot, socket) in sockets {
            match AcceptTask::start(&self.acceptor, socket, slot) {
                Ok(task) => self.accept_tasks.push(task),
                Err(error) => alert!("epoll_ctl() failed{}", Errno(&error)),
            }
        }
    }

    /// Accepts only what is in the queues, and ends after the last connection, including those that
    /// other workers have just passed on.
    fn leave(&mut self, own: MailboxSender<WorkerOrder>) {
        for AcceptTask { slot, task, listener } in std::mem::take(&mut self.accept_tasks) {
            task.stop();
            listener.inspect(|listener| self.acceptor.accept_queued(listener, slot));
        }
        self.acceptor.close();
        let acceptor = self.acceptor.clone();
        net::spawn(async move {
            leave_all(&acceptor).await;
            while !acceptor.is_empty() {
                net::sleep(HANDED_OVER_PAUSE).await;
                leave_all(&acceptor).await;
            }
            own.send(WorkerOrder::Stop);
        });
    }
}

/// Counts the turns of this worker's event loop, once a configuration shows them.
fn count_turns(number: usize) {
    if metrics::are_wanted() {
        WorkerCounters::count_turns(number);
    }
}

async fn leave_all(acceptor: &Acceptor) {
    for subsystem in acceptor.subsystems() {
        subsystem.clone().leave().await;
    }
}

/// Closes log files and syslog sockets that only ended configurations needed, after writing waiting
/// lines.
fn forget_old() {
    observe::flush_all();
    session::log::forget_old();
}

impl AcceptTask {
    fn start(acceptor: &Rc<Acceptor>, socket: OwnedFd, slot: u32) -> std::io::Result<Self> {
        if listening::is_datagram(socket.as_fd()) {
            let task = net::spawn(acceptor.clone().receive(socket, slot));
            return Ok(Self { slot, task, listener: None });
        }
        let listener = Rc::new(Listener::new(socket)?);
        let task = net::spawn(acceptor.clone().accept(listener.clone(), slot));
        Ok(Self { slot, task, listener: Some(listener) })
    }
}
