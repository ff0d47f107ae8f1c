//! A configuration in use: one worker's reference to it, and its interface for sessions.

use std::any::Any;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use ::upstream::Group;
use conf::VariableId;
use net::Address;

use crate::status::published::SubsystemStatus;
use crate::variables::Variable;
use crate::worker_slots::{WorkerSlotKinds, WorkerSlots};

/// For each slot of a listening socket, its index in a configuration's list. `None`: the socket
/// belongs to another subsystem or to an earlier configuration.
pub type ListenerSlots = Arc<[Option<u32>]>;

/// Dropping it reports that no worker uses the generation any more.
pub type GenerationEnd = Arc<dyn Any + Send + Sync>;

/// The compiled configuration of a subsystem. It never changes.
pub trait Configuration: Sized + 'static {
    /// The sessions served by the configuration.
    type Session;
    type Listen;

    /// The variable of a number.
    fn variable(&self, id: VariableId) -> &Variable<Self::Session>;
    /// The state of features that each worker keeps while it uses the configuration.
    fn worker_slots(&self) -> &WorkerSlotKinds<WorkerGeneration<Self>>;
    /// What is shown of it.
    fn status(&self) -> &Arc<SubsystemStatus>;
    /// The groups of upstream servers.
    fn groups(&self) -> &[Arc<Group>];
    /// The listening sockets, in the order of the configuration.
    fn listens(&self) -> &[Self::Listen];
    fn address(listen: &Self::Listen) -> &Address;
    /// The port that clients use for a listening socket, if `server_port=` sets another one.
    fn server_port(listen: &Self::Listen) -> Option<u16>;
}

/// One worker's reference to a configuration. Its sessions share it without touching a reference
/// count that other threads use.
pub struct WorkerGeneration<C: Configuration> {
    configuration: Arc<C>,
    /// The number of earlier generations.
    pub number: u64,
    /// The state that features keep for this worker.
    pub worker: WorkerSlots<Self>,
    /// Whether a worker serves it. Code that only evaluates variables also has a generation.
    is_served: Cell<bool>,
    slots: ListenerSlots,
    _end: Option<GenerationEnd>,
}

impl<C: Configuration> WorkerGeneration<C> {
    /// A generation whose sockets have the slots 0, 1, 2 ... in the order of the configuration.
    pub fn new(configuration: Arc<C>, number: u64) -> Rc<Self> {
        let slots = (0..configuration.listens().len() as u32).map(Some).collect();
        Self::with_end(configuration, number, slots, None)
    }

    /// A generation whose sockets may be older than it.
    pub fn with_slots(
        configuration: Arc<C>,
        number: u64,
        slots: ListenerSlots,
        end: GenerationEnd,
    ) -> Rc<Self> {
        Self::with_end(configuration, number, slots, Some(end))
    }

    fn with_end(
        configuration: Arc<C>,
        number: u64,
        slots: ListenerSlots,
        end: Option<GenerationEnd>,
    ) -> Rc<Self> {
        let worker = WorkerSlots::new(configuration.worker_slots());
        let is_served = Cell::new(false);
        Rc::new(Self { configuration, number, worker, is_served, slots, _end: end })
    }

    /// Marks the generation as served by this worker. Call it once, before anything is served.
    /// Dropping the last reference ends it.
    pub fn start(self: &Rc<Self>) {
        self.is_served.set(true);
        self.worker.worker_started(self);
    }

    pub fn configuration(&self) -> &Arc<C> {
        &self.configuration
    }

    /// The listening socket of a slot; `None` if this configuration does not have it.
    pub fn listen(&self, slot: u32) -> Option<&C::Listen> {
        let index = self.slots.get(slot as usize).copied().flatten()?;
        self.configuration.listens().get(index as usize)
    }

    /// The slot of the listening socket for connections to an address: the one with that address,
    /// or else the one with a wildcard address and that port.
    pub fn slot_at(&self, to: &Address) -> Option<u32> {
        let slot = |is_meant: &dyn Fn(&Address) -> bool| {
            let has = |index: &Option<u32>| {
                let listen = self.configuration.listens().get((*index)? as usize)?;
                is_meant(C::address(listen)).then_some(())
            };
            let at = self.slots.iter().position(|index| has(index).is_some())?;
            u32::try_from(at).ok()
        };
        slot(&|address| address == to).or_else(|| slot(&|address| address.includes(to)))
    }
}

impl<C: Configuration> Drop for WorkerGeneration<C> {
    fn drop(&mut self) {
        if self.is_served.get() {
            self.worker.worker_left(self);
        }
    }
}

impl<C: Configuration> Deref for WorkerGeneration<C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.configuration
    }
}
