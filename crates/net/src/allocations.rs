//! Counts allocations, for tests of paths that may not allocate, or only a number of bytes. Not
//! part of the crate's interface.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator with counts per thread: allocations, and bytes in use.
pub struct Counting;

/// The number of this thread's allocations.
pub fn count() -> u64 {
    COUNT.get()
}

/// Bytes that this thread has allocated and not freed. Memory that another thread frees is
/// subtracted from that thread's count.
pub fn live() -> i64 {
    LIVE.get()
}

fn note(bytes: usize) {
    COUNT.set(COUNT.get() + 1);
    LIVE.set(LIVE.get() + bytes as i64);
}

fn forget(bytes: usize) {
    LIVE.set(LIVE.get() - bytes as i64);
}

// SAFETY: every call is passed unchanged to the system's allocator. Counting allocates nothing,
// since the counters have no destructor and no lazy initialisation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        forget(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        forget(layout.size());
        note(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}
