//! Counts allocations: for tests that hold a path to none, or to so many bytes. Not part of the
//! crate's interface.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for every thread how often it was asked for memory, and how
/// much of it is in use.
pub struct Counting;

/// How often this thread has asked for memory.
pub fn count() -> u64 {
    COUNT.get()
}

/// Bytes that this thread has asked for and not given back. What another thread gives back is
/// missing there.
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

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing, since
// the counter has no destructor and no lazy start.
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
