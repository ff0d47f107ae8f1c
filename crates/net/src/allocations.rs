//! Counts allocations: for tests that hold a path to none. Not part of the crate's interface.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for every thread how often it was asked for memory.
pub struct Counting;

/// How often this thread has asked for memory.
pub fn count() -> u64 {
    COUNT.get()
}

fn note() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing, since
// the counter has no destructor and no lazy start.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}
