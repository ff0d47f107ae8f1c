//! Room for a reply that is being stored.
//!
//! A cache is not larger than its limits allow, fills in progress included: whoever writes a file
//! asks for the room first, and entries of least use go for it. A directory that was not read yet
//! has files that are not counted; the upkeep removes what is too much.

use std::sync::Arc;

use crate::upkeep::CacheLimits;
use crate::zone::CacheZone;

/// File systems give room in pieces of this size.
const PIECE_BYTES: u64 = 4096;
/// The most files that are removed for one piece of a reply.
const EVICTIONS_MAX: u32 = 64;

/// The room that a fill has taken. Its drop gives it back, because a complete file is counted by
/// its entry.
#[derive(Debug)]
pub struct FillRoom {
    zone: Arc<CacheZone>,
    bytes: u64,
    pieces: u64,
}

impl FillRoom {
    /// No room yet.
    pub fn new(zone: Arc<CacheZone>) -> Self {
        Self { zone, bytes: 0, pieces: 0 }
    }

    /// Takes room for more bytes. `free` tells the free space of the file system, if it is known;
    /// it is asked only if that has a limit. Returns whether there is room.
    pub fn grow(
        &mut self,
        bytes: u64,
        limits: &CacheLimits,
        free: impl Fn() -> Option<u64>,
    ) -> bool {
        if limits.size_max == u64::MAX && limits.free_min == 0 {
            return true;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let pieces = self.bytes.div_ceil(PIECE_BYTES);
        let added = (pieces - self.pieces).saturating_mul(PIECE_BYTES);
        self.zone.reserve(added);
        self.pieces = pieces;
        if self.pieces.saturating_mul(PIECE_BYTES) > limits.size_max {
            return false;
        }
        let is_too_much = || {
            let needs = limits.free_min.saturating_add(added);
            self.zone.bytes_with_fills() > limits.size_max
                || limits.free_min > 0 && free().is_some_and(|free| free < needs)
        };
        let mut evictions = 0;
        while is_too_much() {
            if evictions == EVICTIONS_MAX || !self.zone.evict() {
                return false;
            }
            evictions += 1;
        }
        true
    }
}

impl Drop for FillRoom {
    fn drop(&mut self) {
        self.zone.give_back(self.pieces.saturating_mul(PIECE_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder::CacheFolder;
    use crate::key::KeyDigest;
    use crate::zone::FileFacts;

    const LIMITS: CacheLimits = CacheLimits { inactive_s: 600, size_max: u64::MAX, free_min: 0 };

    /// A zone with files of 4096 bytes.
    fn zone(folder: &testing::Folder, files: u32) -> Arc<CacheZone> {
        let path = (**folder).into();
        let zone = CacheZone::new(CacheFolder { path, levels: Default::default() }, 1 << 20);
        for number in 0..files {
            let digest = KeyDigest::of(&number.to_le_bytes());
            fs::write(zone.folder().file(&digest), b"").unwrap();
            zone.store(&digest, FileFacts { inode: 0, blocks: 8 }, i64::from(number));
        }
        Arc::new(zone)
    }

    fn files(folder: &testing::Folder) -> usize {
        fs::read_dir(&**folder).unwrap().count()
    }

    #[test]
    fn entries_go_for_what_is_being_stored() {
        let folder = testing::Folder::new();
        let zone = zone(&folder, 10);
        let limits = CacheLimits { size_max: 10 * 4096, ..LIMITS };
        let mut room = FillRoom::new(zone.clone());
        assert!(room.grow(5000, &limits, || None));
        assert_eq!((zone.entries(), files(&folder)), (8, 8));
        // The second piece has room left.
        assert!(room.grow(3000, &limits, || None));
        assert_eq!(zone.entries(), 8);
        let mut other = FillRoom::new(zone.clone());
        assert!(other.grow(1, &limits, || None));
        assert_eq!(zone.entries(), 7);
        drop((room, other));
        assert_eq!(zone.bytes_with_fills(), 7 * 4096);
    }

    #[test]
    fn what_is_larger_than_the_cache_gets_no_room() {
        let folder = testing::Folder::new();
        let zone = zone(&folder, 3);
        let limits = CacheLimits { size_max: 4 * 4096, ..LIMITS };
        assert!(!FillRoom::new(zone.clone()).grow(4 * 4096 + 1, &limits, || None));
        assert_eq!((zone.entries(), zone.bytes_with_fills()), (3, 3 * 4096));
        // Others that are being stored have all of it.
        let mut first = FillRoom::new(zone.clone());
        assert!(first.grow(4 * 4096, &limits, || None));
        assert!(!FillRoom::new(zone.clone()).grow(1, &limits, || None));
    }

    #[test]
    fn the_disk_is_not_filled_further_than_allowed() {
        let folder = testing::Folder::new();
        let zone = zone(&folder, 10);
        let limits = CacheLimits { free_min: 8 * 4096, ..LIMITS };
        let free = || Some((16 - files(&folder) as u64) * 4096);
        let mut room = FillRoom::new(zone.clone());
        assert!(room.grow(4096, &limits, free));
        assert_eq!(zone.entries(), 7);
        assert!(!room.grow(4096, &limits, || Some(0)));
        assert_eq!(zone.entries(), 0);
    }

    #[test]
    fn without_limits_nothing_is_counted() {
        let folder = testing::Folder::new();
        let zone = zone(&folder, 1);
        assert!(FillRoom::new(zone.clone()).grow(u64::MAX, &LIMITS, || panic!("it is not asked")));
        assert_eq!(zone.entries(), 1);
    }
}
