//! A piece of a buffer as offsets. The parsers return slices instead of copies.
//!
//! A `Slice` means nothing without the buffer it was cut from; it survives that buffer moving or
//! growing, which a reference would not.

/// Bytes `start..end` of the buffer that was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Slice {
    /// The largest buffer that can be cut: offsets are 32 bits.
    pub const BUFFER_MAX: usize = u32::MAX as usize;

    /// `start..end`, both at most [`Slice::BUFFER_MAX`]: the parsers refuse longer input before.
    pub(crate) fn new(start: usize, end: usize) -> Slice {
        debug_assert!(start <= end && end <= Slice::BUFFER_MAX);
        Slice { start: start as u32, end: end as u32 }
    }

    /// The bytes, out of the buffer this slice was cut from.
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }

    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The same bytes when the buffer begins `by` bytes earlier.
    pub(crate) fn shifted(self, by: usize) -> Slice {
        Slice::new(self.start as usize + by, self.end as usize + by)
    }
}
