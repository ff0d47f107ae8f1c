//! The number of a task.

/// A worker of this process.
pub(super) type WorkerNumber = u16;

/// Workers that a [`TaskId`] has room for.
pub(super) const WORKERS_MAX: usize = 4096;

/// A task among those of all workers, as a number: all that a waker has. That of a task that is
/// over may come to mean another one, which is then woken for nothing.
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

    /// What a waker has of it.
    pub(super) fn number(self) -> usize {
        self.0
    }

    /// The one that a waker has.
    pub(super) fn of(number: usize) -> Self {
        Self(number)
    }
}

const _: () = assert!(usize::BITS == 64, "room for all parts");

#[cfg(all(not(weir_loom), test))]
mod tests {
    use super::*;

    #[test]
    fn its_parts_do_not_touch() {
        let id = TaskId::new(WORKERS_MAX as WorkerNumber - 1, 7, (1 << TaskId::INDEX_BITS) - 1);
        assert_eq!(usize::from(id.worker()), WORKERS_MAX - 1);
        assert_eq!(id.index(), (1 << TaskId::INDEX_BITS) - 1);
        assert!(id.is_of(7) && id.is_of(7 + (1 << TaskId::GENERATION_BITS)) && !id.is_of(8));
    }
}
