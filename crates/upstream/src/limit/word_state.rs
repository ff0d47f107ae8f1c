//! The bits of a [word](super::word): slots in use, requests waiting, and the maximum.

/// Width of each of the three numbers.
const BITS: u32 = 21;
const MASK: u64 = (1 << BITS) - 1;

pub(super) const USED: u64 = 1;
pub(super) const WAITING: u64 = 1 << BITS;
const MAX_SHIFT: u32 = 2 * BITS;

/// The largest maximum: as good as no limit. It also limits how many wait.
pub const SLOTS_MAX: u32 = MASK as u32;

/// The process of this word uses the server. Set in shared memory only.
const PRESENT: u64 = 1 << (3 * BITS);

/// The word's value at one moment.
#[derive(Clone, Copy)]
pub(super) struct WordState(u64);

impl WordState {
    pub(super) fn of(word: u64) -> Self {
        Self(word)
    }

    /// A word whose server begins to be used, with this maximum.
    pub(super) fn unused(max: u32) -> Self {
        Self(max_bits(max))
    }

    /// The same in shared memory, where it shows that this process uses the server.
    pub(super) fn present(max: u32) -> Self {
        Self(PRESENT | max_bits(max))
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Whether the word's process uses the server.
    pub(super) fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    pub(super) fn with_max(self, max: u32) -> Self {
        Self(self.0 & !(MASK << MAX_SHIFT) | max_bits(max))
    }

    pub(super) fn used(self) -> u32 {
        (self.0 & MASK) as u32
    }

    pub(super) fn waiting(self) -> u32 {
        (self.0 >> BITS & MASK) as u32
    }

    pub(super) fn max(self) -> u32 {
        (self.0 >> MAX_SHIFT & MASK) as u32
    }

    pub(super) fn has_free(self) -> bool {
        self.used() < self.max()
    }
}

fn max_bits(max: u32) -> u64 {
    u64::from(max.min(SLOTS_MAX)) << MAX_SHIFT
}
