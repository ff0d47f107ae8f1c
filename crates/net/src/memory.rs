//! Memory: fallible allocation, a reserve, and the return of unused memory to the system.
//!
//! When the system is out of memory (`ulimit -v`, no overcommit), only the request that needs a
//! large buffer fails: [`try_reserve`] returns an error, and the caller answers 500. Small
//! allocations cannot fail anywhere; they use a reserve instead ([`Allocator`]), which large
//! buffers leave alone.

#[cfg(not(target_env = "musl"))]
use std::alloc::System;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, RefCell};
use std::collections::TryReserveError;
use std::fmt;
use std::io;

#[cfg(target_env = "musl")]
use mimalloc::MiMalloc as System;
use observe::{Errno, Level};
use rustix::io::Errno as SystemError;

use crate::{buffers, event_loop, lent_future, timer};

mod reserve;

use reserve::RESERVE;
pub use reserve::{hold_reserve, is_scarce, is_short};

/// Large freed pieces are worth a trim from this many bytes.
const FREED_PER_TRIM: usize = 8 * 1024 * 1024;

/// Memory freed because it was unused for a while, so not needed soon, is worth a trim from this
/// many bytes.
const SPARE_PER_TRIM: usize = 512 * 1024;

/// Ticks between two upkeeps.
const UPKEEP_TICKS: u32 = 3;

/// Buffers of at least this many bytes are not taken from the reserve.
const LARGE: usize = 64 * 1024;

thread_local! {
    static FREED: Cell<usize> = const { Cell::new(0) };
    static TICKS: Cell<u32> = const { Cell::new(0) };
    static UPKEEP: RefCell<Vec<Box<dyn FnMut() -> usize>>> = const { RefCell::new(Vec::new()) };
    /// Whether the caller handles a failed allocation.
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Reserves space in a buffer whose size depends on clients, backends or settings.
pub fn try_reserve(buffer: &mut Vec<u8>, more: usize) -> Result<(), OutOfMemory> {
    try_grow(buffer, more, Vec::try_reserve)
}

/// Like [`try_reserve`], without space for more than `more` bytes.
pub fn try_reserve_exact(buffer: &mut Vec<u8>, more: usize) -> Result<(), OutOfMemory> {
    try_grow(buffer, more, Vec::try_reserve_exact)
}

pub fn try_with_capacity(bytes: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut buffer = Vec::new();
    try_reserve_exact(&mut buffer, bytes)?;
    Ok(buffer)
}

pub fn try_zeroed(bytes: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut buffer = try_with_capacity(bytes)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

fn try_grow(
    buffer: &mut Vec<u8>,
    more: usize,
    grow: impl FnOnce(&mut Vec<u8>, usize) -> Result<(), TryReserveError>,
) -> Result<(), OutOfMemory> {
    let bytes = buffer.len().saturating_add(more);
    if bytes <= buffer.capacity() {
        return Ok(());
    }
    let may_use_reserve = bytes < LARGE && !is_scarce();
    if is_short() && !may_use_reserve {
        return Err(OutOfMemory { bytes });
    }
    MAY_FAIL.set(!may_use_reserve);
    let grown = grow(buffer, more);
    MAY_FAIL.set(false);
    grown.map_err(|_| OutOfMemory { bytes })
}

/// A buffer of this size could not be allocated; displayed in nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from(SystemError::NOMEM);
        write!(f, "malloc({}) failed{}", self.bytes, Errno(&error))
    }
}

impl std::error::Error for OutOfMemory {}

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

/// Whether an operation failed for lack of memory.
pub fn is_out_of_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// The C library's allocator, or mimalloc in place of musl's. If it has no memory for a small
/// allocation, a piece of the reserve is freed.
pub struct Allocator;

// SAFETY: every call is passed unchanged to the system's allocator, perhaps more than once; the
// code in between allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        or_retry(|| unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_retry(|| unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above. On failure, `memory` is unchanged.
        or_retry(|| unsafe { System.realloc(memory, layout, size) })
    }
}

#[inline(always)]
fn or_retry(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if memory.is_null() { retry(allocate) } else { memory }
}

/// Tries again after freeing a piece of the reserve, unless the caller handles the failure.
#[cold]
fn retry(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    while !MAY_FAIL.get() && RESERVE.give_up_a_piece() {
        let memory = allocate();
        if !memory.is_null() {
            return memory;
        }
    }
    std::ptr::null_mut()
}

/// Counts a large piece of memory that this worker has freed. The allocator keeps freed memory;
/// once there is enough of it, the worker's next upkeep returns it to the system.
pub fn note_freed(bytes: usize) {
    FREED.set(FREED.get().saturating_add(bytes));
}

/// Whether enough was freed since this last returned true.
fn is_worth_a_trim() -> bool {
    let enough = FREED.get() >= FREED_PER_TRIM;
    if enough {
        FREED.set(0);
    }
    enough
}

/// Returns free memory to the system, wherever in the heap it is. Holds the allocator's locks while
/// it walks the heap.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers and may be made at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Calls `shrink` every few seconds on this worker: it frees memory that was unused for a while,
/// and returns the number of bytes.
pub fn at_upkeep(shrink: impl FnMut() -> usize + 'static) {
    UPKEEP.with_borrow_mut(|hooks| hooks.push(Box::new(shrink)));
}

/// Called by every worker once a second.
pub(crate) fn tick() {
    refill_reserve();
    TICKS.set(TICKS.get().wrapping_add(1));
    if !TICKS.get().is_multiple_of(UPKEEP_TICKS) {
        return;
    }
    let shrunk = UPKEEP.with_borrow_mut(|hooks| hooks.iter_mut().map(|hook| hook()).sum::<usize>());
    let spare = shrunk + buffers::shrink() + lent_future::shrink();
    let many_ended = event_loop::many_tasks_ended();
    event_loop::shrink();
    timer::shrink();
    if spare >= SPARE_PER_TRIM || many_ended || is_worth_a_trim() {
        give_back();
    }
}

/// Refills the reserve if some of it was used.
fn refill_reserve() {
    if !RESERVE.is_used() {
        return;
    }
    give_back();
    match RESERVE.refill() {
        true => observe::log(Level::Notice, format_args!("there is a reserve of memory again")),
        false if RESERVE.is_news() => {
            let error = io::Error::from(SystemError::NOMEM);
            observe::log(
                Level::Emerg,
                format_args!("malloc() failed{}; the reserve is in use", Errno(&error)),
            );
        }
        false => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_freed_memory_causes_one_trim() {
        note_freed(FREED_PER_TRIM - 1);
        assert!(!is_worth_a_trim());
        note_freed(1);
        assert!(is_worth_a_trim() && !is_worth_a_trim());
    }

    #[test]
    fn a_buffer_larger_than_memory_is_an_error_in_nginx_s_words() {
        let bytes = isize::MAX as usize;
        let error = try_with_capacity(bytes).unwrap_err();
        let text = format!("malloc({bytes}) failed (12: Cannot allocate memory)");
        assert_eq!(error.to_string(), text);
        assert!(is_out_of_memory(&error.into()));
        assert!(!MAY_FAIL.get());
        let mut buffer = vec![1; 10];
        assert!(try_reserve_exact(&mut buffer, bytes).is_err() && buffer == [1; 10]);
        assert!(try_reserve(&mut buffer, 100).is_ok() && buffer.capacity() >= 110);
    }
}
