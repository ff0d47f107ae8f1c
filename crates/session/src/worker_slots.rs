//! State of features that each worker has for each generation, found by its type: open files, a
//! virtual machine, a worker's counts.
//!
//! A feature declares a type while the configuration is compiled ([`WorkerSlotKinds::declare`]).
//! Every worker then has one value of the type in each generation ([`WorkerSlots::of`]), which is
//! dropped with the generation's last session in the worker. No other thread sees it, so it needs
//! no lock. Deliberately absent: state that outlives a generation (`zones::Zones`, thread locals of
//! the owning modules), and the purpose of any slot.

use std::any::{Any, TypeId};
use std::rc::Rc;

/// A feature's state in one worker and generation. `G` is the worker's generation.
pub trait WorkerSlot<G>: Default + 'static {
    /// Called when the worker starts to serve the generation, before it serves any session.
    fn worker_started(&self, generation: &Rc<G>) {
        let _ = generation;
    }

    /// Called when the worker has no session of the generation any more. If the process stops at
    /// once, the event loop has ended, so that no task can be started.
    fn worker_left(&self, generation: &G) {
        let _ = generation;
    }
}

/// The types of slots in a configuration.
pub struct WorkerSlotKinds<G>(Vec<WorkerSlotKind<G>>);

struct WorkerSlotKind<G> {
    id: TypeId,
    make: fn() -> Box<dyn AnyWorkerSlot<G>>,
}

/// The slots of one worker and generation, in the order of their declaration.
pub struct WorkerSlots<G>(Vec<(TypeId, Box<dyn AnyWorkerSlot<G>>)>);

/// A slot of any type.
trait AnyWorkerSlot<G>: Any {
    fn worker_started(&self, generation: &Rc<G>);
    fn worker_left(&self, generation: &G);
}

impl<G, T: WorkerSlot<G>> AnyWorkerSlot<G> for T {
    fn worker_started(&self, generation: &Rc<G>) {
        WorkerSlot::worker_started(self, generation);
    }

    fn worker_left(&self, generation: &G) {
        WorkerSlot::worker_left(self, generation);
    }
}

impl<G> Default for WorkerSlotKinds<G> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<G: 'static> WorkerSlotKinds<G> {
    /// Adds a slot of type `T` to every worker. Repeated declarations have no further effect.
    pub fn declare<T: WorkerSlot<G>>(&mut self) {
        let id = TypeId::of::<T>();
        if !self.0.iter().any(|kind| kind.id == id) {
            self.0.push(WorkerSlotKind { id, make: || Box::<T>::default() });
        }
    }
}

impl<G: 'static> WorkerSlots<G> {
    pub(crate) fn new(kinds: &WorkerSlotKinds<G>) -> Self {
        Self(kinds.0.iter().map(|kind| (kind.id, (kind.make)())).collect())
    }

    /// The slot of a declared type.
    pub fn of<T: WorkerSlot<G>>(&self) -> &T {
        self.find().expect("whoever uses a slot has declared it")
    }

    /// The slot of a type; `None` if it is not declared.
    pub fn find<T: WorkerSlot<G>>(&self) -> Option<&T> {
        let (_, slot) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        let slot: &dyn Any = &**slot;
        slot.downcast_ref()
    }

    pub(crate) fn worker_started(&self, generation: &Rc<G>) {
        self.0.iter().for_each(|(_, slot)| slot.worker_started(generation));
    }

    /// In reverse order, because a slot may use earlier ones.
    pub(crate) fn worker_left(&self, generation: &G) {
        self.0.iter().rev().for_each(|(_, slot)| slot.worker_left(generation));
    }
}
