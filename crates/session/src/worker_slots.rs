//! State that each worker has of its own for each generation, found by its type: open files, a
//! virtual machine, what a worker counts.
//!
//! A feature declares a type while the configuration is compiled ([`WorkerSlotKinds::declare`]).
//! Every worker then has one value of the type in each generation ([`WorkerSlots::of`]), which is
//! dropped with the generation's last session in the worker. No other thread sees it, so it needs
//! no lock. Deliberately absent: state that outlives a generation (`zones::Zones`, thread locals of
//! what owns them), and what any slot is for.

use std::any::{Any, TypeId};
use std::rc::Rc;

/// A feature's state in one worker and generation. `G` is the worker's generation.
pub trait WorkerSlot<G>: Default + 'static {
    /// The worker starts to serve the generation; nothing is served by it yet.
    fn worker_started(&self, generation: &Rc<G>) {
        let _ = generation;
    }

    /// The worker has no session of the generation any more. When the process stops at once, its
    /// event loop is gone: no task can be started.
    fn worker_left(&self, generation: &G) {
        let _ = generation;
    }
}

/// The slots that a configuration has.
pub struct WorkerSlotKinds<G>(Vec<WorkerSlotKind<G>>);

struct WorkerSlotKind<G> {
    id: TypeId,
    make: fn() -> Box<dyn AnyWorkerSlot<G>>,
}

/// The slots of one worker and generation, in the order in which they were declared.
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
    /// Every worker has a `T` from now on. It may be declared any number of times.
    pub fn declare<T: WorkerSlot<G>>(&mut self) {
        let id = TypeId::of::<T>();
        if !self.0.iter().any(|kind| kind.id == id) {
            self.0.push(WorkerSlotKind { id, make: || Box::<T>::default() });
        }
    }
}

impl<G: 'static> WorkerSlots<G> {
    /// New slots.
    pub(crate) fn new(kinds: &WorkerSlotKinds<G>) -> Self {
        Self(kinds.0.iter().map(|kind| (kind.id, (kind.make)())).collect())
    }

    /// The slot of a type that has been declared.
    pub fn of<T: WorkerSlot<G>>(&self) -> &T {
        self.find().expect("whoever uses a slot has declared it")
    }

    /// The slot of a type, if it has been declared.
    pub fn find<T: WorkerSlot<G>>(&self) -> Option<&T> {
        let (_, slot) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        let slot: &dyn Any = &**slot;
        slot.downcast_ref()
    }

    pub(crate) fn worker_started(&self, generation: &Rc<G>) {
        self.0.iter().for_each(|(_, slot)| slot.worker_started(generation));
    }

    /// In reverse order: a slot may use one that was declared before it.
    pub(crate) fn worker_left(&self, generation: &G) {
        self.0.iter().rev().for_each(|(_, slot)| slot.worker_left(generation));
    }
}
