//! How bodies are compressed, and how much shorter they became.

use crate::exchange::FeatureState;

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

/// Bytes of the body before and after, known once it has ended.
#[derive(Clone, Copy, Default)]
pub(super) struct Ratio {
    pub(super) before: u64,
    pub(super) after: u64,
}

impl FeatureState for Ratio {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn redirected(&mut self) {
        self.clear();
    }
}
