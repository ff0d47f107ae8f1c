//! Buffers lent to connections that have bytes, and returned when a connection has none.
//!
//! The last buffer returned is the first one lent, so a busy worker reads into memory that is still
//! in its cache, regardless of the number of connections.

use std::cell::RefCell;
use std::ops::Range;

use crate::spare::SparePool;

/// Bytes in a lent buffer.
pub const BUFFER_SIZE: usize = 16 * 1024;
/// Bytes in a large buffer, which halves the number of calls for large transfers.
pub const LARGE_SIZE: usize = 32 * 1024;
/// Bytes in a huge buffer, for the output of many streams in one call.
pub const HUGE_SIZE: usize = 160 * 1024;
/// Free buffers that a worker keeps; more go back to the allocator.
const KEPT_MAX: usize = 1024;
/// The same for large buffers.
const LARGE_KEPT_MAX: usize = 64;
/// The same for huge buffers.
const HUGE_KEPT_MAX: usize = 8;

type FreeBuffers = RefCell<SparePool<Vec<u8>>>;

thread_local! {
    static FREE: FreeBuffers = const { RefCell::new(SparePool::new(KEPT_MAX)) };
    static LARGE_FREE: FreeBuffers = const { RefCell::new(SparePool::new(LARGE_KEPT_MAX)) };
    static HUGE_FREE: FreeBuffers = const { RefCell::new(SparePool::new(HUGE_KEPT_MAX)) };
}

/// An empty buffer with room for [`BUFFER_SIZE`] bytes.
pub fn lend() -> Vec<u8> {
    FREE.with_borrow_mut(SparePool::take).unwrap_or_else(|| Vec::with_capacity(BUFFER_SIZE))
}

/// An empty buffer with room for [`LARGE_SIZE`] bytes.
pub fn lend_large() -> Vec<u8> {
    LARGE_FREE.with_borrow_mut(SparePool::take).unwrap_or_else(|| Vec::with_capacity(LARGE_SIZE))
}

/// An empty buffer with room for [`HUGE_SIZE`] bytes.
pub fn lend_huge() -> Vec<u8> {
    HUGE_FREE.with_borrow_mut(SparePool::take).unwrap_or_else(|| Vec::with_capacity(HUGE_SIZE))
}

/// A part of a lent buffer; dropping it returns the buffer.
pub struct LentPart {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl LentPart {
    pub fn new(buffer: Vec<u8>, part: Range<usize>) -> Self {
        assert!(part.start <= part.end && part.end <= buffer.len(), "a part of the buffer");
        Self { buffer, start: part.start, end: part.end }
    }

    /// Narrows the part; offsets count from its start.
    pub fn cut(&mut self, part: Range<usize>) {
        assert!(part.start <= part.end && part.end <= self.end - self.start, "a part of the part");
        (self.start, self.end) = (self.start + part.start, self.start + part.end);
    }
}

/// Copies the part into a buffer of its own.
impl Clone for LentPart {
    fn clone(&self) -> Self {
        let mut buffer = lend();
        buffer.extend_from_slice(self.as_ref());
        let end = buffer.len();
        Self { buffer, start: 0, end }
    }
}

impl AsRef<[u8]> for LentPart {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

impl Drop for LentPart {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.buffer));
    }
}

/// Takes a buffer back. One that has grown is freed.
pub fn give_back(mut buffer: Vec<u8>) {
    let free = match buffer.capacity() {
        BUFFER_SIZE => &FREE,
        LARGE_SIZE => &LARGE_FREE,
        HUGE_SIZE => &HUGE_FREE,
        _ => return,
    };
    buffer.clear();
    drop(free.with_borrow_mut(|free| free.put(buffer)));
}

/// Frees some of the memory unused since the last call. Returns the number of bytes.
pub(crate) fn shrink() -> usize {
    let all = [&FREE, &LARGE_FREE, &HUGE_FREE];
    let freed = all.into_iter().flat_map(|free| free.with_borrow_mut(SparePool::shrink));
    freed.map(|buffer| buffer.capacity()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_a_burst_are_freed_in_a_few_rounds() {
        const COUNT: usize = 500;
        let lent: Vec<_> = (0..COUNT).map(|_| lend()).collect();
        lent.into_iter().for_each(give_back);
        assert_eq!(shrink(), 0, "they were needed just now");
        let freed: usize = (0..12).map(|_| shrink()).sum();
        assert!((COUNT - 10) * BUFFER_SIZE < freed && freed < COUNT * BUFFER_SIZE, "{freed}");
    }
}
