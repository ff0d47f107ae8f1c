//! Identifies a task by a number, which is all the data of a waker.

/// The number of a worker in this process.
pub(super) type WorkerNumber = u16;

/// Workers that fit into a [`TaskId`].
pub(super) const WORKERS_MAX: usize = 4096;

/// A task of any worker: worker, slot, and generation. The number of an ended task may come to mean
/// another one, which is then woken in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskId(usize);

impl TaskId {
    const INDEX_BITS: u32 = 28;
    const GENERATION_BITS: u32 = 24;

    pub(super) fn new(worker: WorkerNumber, generation: u32, index: u32) -> Self {
        let generation = generation as usize & ((1 << Self::GENERATION_BITS) - 1);
        let above = usize::from(worker) << Self::GENERATION_BITS | generation;
        Self(above << Self::INDEX_BITS | index as usize)
    }

    pub(super) fn worker(self) -> WorkerNumber {
        (self.0 >> (Self::INDEX_BITS + Self::GENERATION_BITS)) as WorkerNumber
    }

    pub(super) fn index(self) -> u32 {
        (self.0 & ((1 << Self::INDEX_BITS) - 1)) as u32
    }

    pub(super) fn is_of(self, generation: u32) -> bool {
        (self.0 >> Self::INDEX_BITS) as u32 & ((1 << Self::GENERATION_BITS) - 1)
            == generation & ((1 << Self::GENERATION_BITS) - 1)
    }

    /// The number for a waker.
    pub(super) fn number(self) -> usize {
        self.0
    }

    /// The id from a waker's number.
    pub(super) fn of(number: usize) -> Self {
        Self(number)
    }
}

const _: () = assert!(usize::BITS == 64, "room for all parts");

#[cfg(all(not(weir_loom), test))]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_id_do_not_overlap() {
        let id = TaskId::new(WORKERS_MAX as WorkerNumber - 1, 7, (1 << TaskId::INDEX_BITS) - 1);
        assert_eq!(usize::from(id.worker()), WORKERS_MAX - 1);
        assert_eq!(id.index(), (1 << TaskId::INDEX_BITS) - 1);
        assert!(id.is_of(7) && id.is_of(7 + (1 << TaskId::GENERATION_BITS)) && !id.is_of(8));
    }
}
