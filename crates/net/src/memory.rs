//! The allocator's memory and the system's.

/// Gives memory that is free back to the system, wherever in the heap it is.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers and may be made at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
