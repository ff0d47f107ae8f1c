//! How bodies are compressed, and how many bytes that saved.

use std::cell::Cell;

/// The largest window: 32 KB.
pub(super) const WINDOW_BITS_MAX: u8 = 15;

/// How the bodies of a location are compressed.
pub(super) struct GzipSettings {
    /// 1 to 9.
    pub(super) level: u8,
    pub(super) window_bits: u8,
    pub(super) mem_level: u8,
    /// Bytes of output at once.
    pub(super) piece_max: usize,
    /// Bytes gathered before compression begins, if they are more than is gathered anyway.
    pub(super) postpone: usize,
    pub(super) no_buffer: bool,
}

/// Bytes of a body before and after, known once it has ended.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) before: Cell<u64>,
    pub(super) after: Cell<u64>,
}

impl Totals {
    pub(super) fn set(&self, before: u64, after: u64) {
        self.before.set(before);
        self.after.set(after);
    }
}
