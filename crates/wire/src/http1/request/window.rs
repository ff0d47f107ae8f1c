//! nginx's header buffers as arithmetic.
//!
//! nginx reads a head into one small buffer, then into up to `number` large ones; a line that does
//! not fit the rest of a buffer moves to the start of the next. Here the head is in one piece. Only
//! the end of nginx's current buffer is tracked, so that the same requests pass.

use crate::Slice;
use crate::request::HeadLimits;

/// The end of the current buffer, as an offset in the input, and the number of large buffers in
/// use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineWindow {
    pub(super) end: usize,
    used: usize,
}

impl LineWindow {
    /// Whether a line that begins at `start` and extends to `upto` or beyond fits.
    #[inline]
    pub(super) fn admits(&mut self, start: usize, upto: usize, limits: &HeadLimits) -> bool {
        upto < self.end || self.grow(start, upto, limits)
    }

    #[cold]
    fn grow(&mut self, start: usize, upto: usize, limits: &HeadLimits) -> bool {
        if self.end == 0 {
            self.end = limits.client_header_buffer_size.clamp(1, Slice::BUFFER_MAX);
        }
        let (number, size) = limits.large_client_header_buffers;
        while upto >= self.end {
            let end = start.saturating_add(size).min(Slice::BUFFER_MAX);
            if end <= self.end || self.used >= number {
                return false;
            }
            self.used += 1;
            self.end = end;
        }
        true
    }
}
