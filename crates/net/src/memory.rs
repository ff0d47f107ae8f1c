//! The allocator's memory and the system's.

use std::cell::Cell;

/// Bytes freed that make it worth looking for what can be given back.
const FREED_PER_TRIM: usize = 8 * 1024 * 1024;

thread_local! {
    static FREED: Cell<usize> = const { Cell::new(0) };
}

/// Notes that a large piece of memory of this worker's was freed. The allocator keeps it for later;
/// once there is enough of it, it is given back to the system at the worker's next tick.
pub fn note_freed(bytes: usize) {
    FREED.set(FREED.get().saturating_add(bytes));
}

/// Whether enough was freed since this was last true.
pub(crate) fn is_worth_a_trim() -> bool {
    let enough = FREED.get() >= FREED_PER_TRIM;
    if enough {
        FREED.set(0);
    }
    enough
}

/// Gives memory that is free back to the system, wherever in the heap it is. Takes the allocator's
/// locks for as long as it walks through the heap.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers and may be made at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_worth_one_trim() {
        note_freed(FREED_PER_TRIM - 1);
        assert!(!is_worth_a_trim());
        note_freed(1);
        assert!(is_worth_a_trim() && !is_worth_a_trim());
    }
}
