//! The HTTP part of a worker: it starts a driver for each connection, parks idle connections, and
//! ends all of them when it leaves.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::Duration;

use ::session::{
    LocalFuture, PassTargets, PassedConnection, SiteShare, SubsystemSite, SubsystemWorker,
};
use net::{Accepted, Address, Detached, IdleSet, SocketOptions, SocketProbe, Stream, Task};

use crate::accept::{self, ParkedConnection, UnusedConnection};
use crate::client::Client;
use crate::drive::{DRAIN_STEPS, OF_ANY_GENERATION, WorkerContext};
use crate::h1::ConnectionState;
use crate::h2::ResumeReason;
use crate::site::{Generation, Site};

/// The most idle connections to end at once when there is no room for new ones.
const RECLAIMED_MAX: usize = 32;
/// The time between two steps in which clients are told to go elsewhere.
const DRAIN_PAUSE: Duration = Duration::from_millis(100);

/// The HTTP part of a worker.
pub struct Worker {
    context: Rc<WorkerContext>,
    /// Parked connections; `None` if there was no descriptor for the set.
    idle_set: Option<Rc<IdleSet<ParkedConnection>>>,
    /// Tells clients to go elsewhere.
    draining: RefCell<Option<Task>>,
}

impl Worker {
    /// A worker that serves this configuration.
    pub fn new(generation: Rc<Generation>) -> Rc<Self> {
        net::at_turn_end(observe::end_turn);
        generation.start();
        let idle_set = IdleSet::new().ok();
        let context = WorkerContext::new(generation, idle_set.is_some());
        let worker = Rc::new(Self { context, idle_set, draining: RefCell::default() });
        if let Some(idle_set) = &worker.idle_set {
            let weak = Rc::downgrade(&worker);
            let weak_too = weak.clone();
            let resume = move |stream, parked| {
                if let Some(worker) = weak.upgrade() {
                    worker.resume(stream, parked, ResumeReason::Input);
                }
            };
            let end = move |stream, parked| {
                if let Some(worker) = weak_too.upgrade() {
                    worker.end_parked(stream, parked, ResumeReason::End);
                }
            };
            net::spawn(idle_set.clone().attend(resume, end));
        }
        worker
    }

    /// Serves a new connection; `debug` logs all its messages.
    pub fn start(self: &Rc<Self>, accepted: Accepted, debug: bool) {
        let Accepted { stream, peer, slot, permit } = accepted;
        let (serial, socket) = (observe::connection_number(), SocketProbe::new(&stream));
        let mut client = Client::new(serial, peer, socket, slot);
        client.debug = debug;
        let (open, received) = (self.context.counts.accept(), Vec::new());
        self.take_over(PassedConnection { client, stream, received, open, permit });
    }

    /// Serves a connection that was accepted by a listening socket of another subsystem.
    pub fn take_over(self: &Rc<Self>, passed: PassedConnection) {
        let PassedConnection { client, stream, received, open, permit } = passed;
        let held = ConnectionState { _open: open, _permit: permit };
        let worker = self.clone();
        self.context.tracker.spawn(OF_ANY_GENERATION, async move {
            let context = worker.context.clone();
            worker.park(accept::serve(context, Rc::new(client), stream, received, held).await);
        });
    }

    /// Resumes a parked connection, perhaps only to end it.
    fn resume(self: &Rc<Self>, stream: Stream, parked: ParkedConnection, reason: ResumeReason) {
        let worker = self.clone();
        self.context.tracker.spawn(OF_ANY_GENERATION, async move {
            let context = worker.context.clone();
            worker.park(accept::resume(context, stream, parked, reason).await);
        });
    }

    /// Parks the connection that a driver returned, if any, until bytes arrive or its time is over.
    fn park(self: &Rc<Self>, left: Option<UnusedConnection>) {
        let Some(UnusedConnection { stream, parked, left_ms }) = left else { return };
        if let Some(idle_set) = &self.idle_set
            && let Err((stream, parked)) = idle_set.park(stream, parked, left_ms)
        {
            self.resume(stream, parked, ResumeReason::Input);
        }
    }

    /// Ends a parked connection. One whose client is told first gets a task again.
    fn end_parked(self: &Rc<Self>, stream: Detached, parked: ParkedConnection, why: ResumeReason) {
        if parked.has_last_words() {
            self.resume(Stream::attach(stream), parked, why);
        }
    }

    fn close_parked(
        self: &Rc<Self>,
        why: ResumeReason,
        keep: impl FnMut(&ParkedConnection) -> bool,
    ) {
        if let Some(idle_set) = &self.idle_set {
            idle_set.retain(keep, |stream, parked| self.end_parked(stream, parked, why));
        }
    }

    /// Makes this the configuration of all requests that begin from now on. Connections are woken,
    /// because it may lack the socket that accepted them.
    pub fn replace(self: &Rc<Self>, generation: Rc<Generation>) {
        generation.start();
        self.context.replace_generation(generation);
        self.close_parked(ResumeReason::End, |parked| self.context.keeps_socket(parked.listen()));
        self.context.tracker.wake_all();
    }

    /// Ends requests and tunnels of generations before this one. Idle connections, and those with a
    /// newer request, stay open; with [`u64::MAX`] all of them end.
    pub fn cut_before(&self, generation: u64) {
        self.context.tracker.cut_before(generation);
    }

    /// Has connections of HTTP/2 tell their clients to go elsewhere, one part of them after the
    /// other. They are served as before. Those of HTTP/1 end with their next reply.
    pub fn set_draining(self: &Rc<Self>, is_draining: bool) {
        let mut draining = self.draining.borrow_mut();
        match (&*draining, is_draining) {
            (None, true) => *draining = Some(net::spawn(Self::drain(Rc::downgrade(self)))),
            (Some(task), false) => {
                task.stop();
                *draining = None;
                self.context.set_drain_step(0);
            }
            _ => {}
        }
    }

    async fn drain(worker: Weak<Self>) {
        for step in 1..=DRAIN_STEPS {
            let Some(worker) = worker.upgrade() else { return };
            worker.context.set_drain_step(step);
            worker
                .close_parked(ResumeReason::Drain, |parked| !parked.must_say_end(&worker.context));
            drop(worker);
            net::sleep(DRAIN_PAUSE).await;
        }
        // Those that were neither parked nor active.
        if let Some(worker) = worker.upgrade() {
            worker.context.tracker.wake_all();
        }
    }

    /// Ends idle connections now, and the others after their current reply. Ready once none is
    /// left.
    pub async fn leave(self: &Rc<Self>) {
        self.context.leave();
        self.close_parked(ResumeReason::End, |_| false);
        self.context.tracker.wake_all();
        self.context.tracker.empty().await;
    }

    #[cfg(test)]
    pub(crate) fn parked(&self) -> usize {
        self.idle_set.as_ref().map_or(0, |idle_set| idle_set.len())
    }

    /// Ends a few idle connections: parked ones immediately, others when their tasks have run.
    pub fn make_room(self: &Rc<Self>) {
        let parked = self.idle_set.as_ref().map_or(0, |idle_set| idle_set.len());
        let mut wanted = ((parked + self.context.tracker.len()) / 8).clamp(1, RECLAIMED_MAX);
        self.close_parked(ResumeReason::GiveWay, |_| {
            let kept = wanted == 0;
            wanted = wanted.saturating_sub(1);
            kept
        });
        if wanted > 0 {
            self.context.want_back(wanted);
            self.context.tracker.wake_all();
        }
    }
}

impl SubsystemSite for Site {
    fn block(&self) -> &'static str {
        "http"
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

    fn start(&self, share: SiteShare, _: Weak<dyn PassTargets>) -> Rc<dyn SubsystemWorker> {
        Worker::new(share.generation())
    }
}

impl SubsystemWorker for Worker {
    fn replace(self: Rc<Self>, share: SiteShare) {
        Worker::replace(&self, share.generation());
    }

    fn start(self: Rc<Self>, accepted: Accepted, debug: bool) {
        Worker::start(&self, accepted, debug);
    }

    fn take_over(self: Rc<Self>, passed: PassedConnection) {
        Worker::take_over(&self, passed);
    }

    fn slot_at(&self, to: &Address) -> Option<u32> {
        self.context.generation().slot_at(to)
    }

    fn cut_before(&self, generation: u64) {
        Worker::cut_before(self, generation);
    }

    fn make_room(self: Rc<Self>) {
        Worker::make_room(&self);
    }

    fn set_draining(self: Rc<Self>, is_draining: bool) {
        Worker::set_draining(&self, is_draining);
    }

    fn leave(self: Rc<Self>) -> LocalFuture {
        Box::pin(async move { Worker::leave(&self).await })
    }
}

#[cfg(test)]
mod tests;
