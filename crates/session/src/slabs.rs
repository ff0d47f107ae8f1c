//! The memory of zones that have a size, as nginx's slab allocator would tell it.

use std::fmt;
use std::sync::Arc;

/// The size of nginx's pages.
pub const PAGE_BYTES: u64 = 4096;

/// The memory of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlabUse {
    pub pages_used: u64,
    pub pages_free: u64,
    /// The sizes that entries are rounded up to; none in zones that do not round.
    pub slots: Vec<SlabSlot>,
}

/// Entries of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabSlot {
    pub bytes: u64,
    pub used: u64,
    /// How many more the pages in use have room for.
    pub free: u64,
}

/// A zone with a size.
#[derive(Clone)]
pub struct ShownSlab {
    pub name: Box<[u8]>,
    source: Arc<dyn Fn() -> SlabUse + Send + Sync>,
}

impl SlabUse {
    /// The memory of a zone that counts bytes.
    pub fn of_bytes(used: u64, bytes_max: u64) -> Self {
        let free = bytes_max.saturating_sub(used);
        let (pages_used, pages_free) = (used.div_ceil(PAGE_BYTES), free / PAGE_BYTES);
        Self { pages_used, pages_free, slots: Vec::new() }
    }
}

impl ShownSlab {
    pub fn new(name: &[u8], source: impl Fn() -> SlabUse + Send + Sync + 'static) -> Self {
        Self { name: name.into(), source: Arc::new(source) }
    }

    /// The memory of the zone as it is now.
    pub fn read(&self) -> SlabUse {
        (self.source)()
    }
}

impl fmt::Debug for ShownSlab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShownSlab").field("name", &self.name.escape_ascii()).finish()
    }
}
