//! Settings of compression, and the ratio of a reply.

use crate::exchange::FeatureState;

/// The largest window: 32 KB.
pub(super) const WINDOW_BITS_MAX: u8 = 15;

/// The compiled settings of a location.
pub(super) struct GzipSettings {
    /// 1 to 9.
    pub(super) level: u8,
    pub(super) window_bits: u8,
    pub(super) mem_level: u8,
    /// The size of a piece of output.
    pub(super) piece_max: usize,
    /// The number of bytes to gather before compression begins, if that exceeds the default.
    pub(super) postpone: usize,
    pub(super) no_buffer: bool,
}

/// The length of a body before and after compression, known after its end.
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
