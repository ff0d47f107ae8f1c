//! Buffers lent to connections that have bytes, and taken back when they wait without any.
//!
//! The last one returned is the first one lent, so a busy worker reads into memory that is still
//! in its cache, however many connections it has.

use std::cell::RefCell;

/// Bytes in a lent buffer.
pub const BUFFER_SIZE: usize = 16 * 1024;
/// Buffers a worker keeps for later; more go back to the allocator.
const KEPT_MAX: usize = 256;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with room for [`BUFFER_SIZE`] bytes.
pub fn lend() -> Vec<u8> {
    FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(BUFFER_SIZE))
}

/// Takes a buffer back. One that grew is not worth keeping.
pub fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() != BUFFER_SIZE {
        return;
    }
    buffer.clear();
    FREE.with_borrow_mut(|free| {
        if free.len() < KEPT_MAX {
            free.push(buffer);
        }
    });
}
