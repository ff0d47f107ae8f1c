//! Entries by key in a limited amount of memory, in order of last use.
//!
//! Memory is counted as by nginx's slab allocator, so that a zone holds about as many entries as in
//! nginx. Finding an entry allocates nothing.

use std::sync::Arc;

use crate::lru::{Lru, LruEntry};
use crate::slabs::{PAGE_BYTES, SlabSlot, SlabUse};

/// The bytes that nginx's allocator uses for each page.
const PAGE_OVERHEAD: u64 = 24;
/// The bytes that it uses for a zone.
const ZONE_OVERHEAD: u64 = 1024;
/// Entries up to this size share pages and are rounded up to a power of two; larger entries have
/// their own pages.
const SHARING_MAX: u64 = PAGE_BYTES / 2;

/// The sizes of entries that share pages: powers of two from this one on.
const SHARED_LEAST: u64 = 8;
const SHARED_SIZES: usize = (SHARING_MAX / SHARED_LEAST).ilog2() as usize + 1;

pub struct Table<V> {
    entries: Lru<V>,
    /// The bytes of an entry without its key.
    entry_bytes: u64,
    /// The bytes left.
    room: u64,
    /// The number of entries that share pages, by the sizes that they are rounded up to.
    sharing: [u64; SHARED_SIZES],
    pages: u64,
}

impl<V> Table<V> {
    /// A table in a zone of `zone_bytes` for entries that take `entry_bytes` in nginx, without
    /// their keys.
    pub fn new(zone_bytes: u64, entry_bytes: u64) -> Self {
        let pages = zone_bytes.saturating_sub(ZONE_OVERHEAD) / (PAGE_BYTES + PAGE_OVERHEAD);
        let (entries, sharing) = (Lru::new(), [0; SHARED_SIZES]);
        Self { entries, entry_bytes, room: pages * PAGE_BYTES, sharing, pages }
    }

    /// The entry with a key.
    pub fn find(&self, key: &[u8]) -> Option<LruEntry> {
        self.entries.find(key)
    }

    /// The value of an entry.
    pub fn value(&mut self, entry: LruEntry) -> &mut V {
        self.entries.value(entry)
    }

    /// The value of an entry that may have been removed. Another may have its place.
    pub fn live(&mut self, entry: LruEntry) -> Option<&mut V> {
        self.entries.live(entry)
    }

    /// The key of an entry.
    pub fn key(&self, entry: LruEntry) -> Arc<[u8]> {
        self.entries.key(entry)
    }

    /// Marks an entry as the most recently used.
    pub fn touch(&mut self, entry: LruEntry) {
        self.entries.touch(entry);
    }

    /// The least recently used entry.
    pub fn oldest(&self) -> Option<LruEntry> {
        self.entries.oldest()
    }

    /// Whether an entry with that key fits.
    pub fn has_room(&self, key: &[u8]) -> bool {
        self.bytes(key) <= self.room
    }

    /// Adds an entry with a new key as the most recently used; `None` if it does not fit.
    pub fn insert(&mut self, key: &[u8], value: V) -> Option<LruEntry> {
        let bytes = self.bytes(key);
        self.room = self.room.checked_sub(bytes)?;
        self.sharing_of(bytes).into_iter().for_each(|sharing| *sharing += 1);
        Some(self.entries.insert(key, value))
    }

    pub fn remove(&mut self, entry: LruEntry) {
        let (key, _) = self.entries.remove(entry);
        let bytes = self.bytes(&key);
        self.room += bytes;
        self.sharing_of(bytes).into_iter().for_each(|sharing| *sharing -= 1);
    }

    /// The memory that the entries take.
    pub fn memory(&self) -> SlabUse {
        let slot = |(size, used): (usize, &u64)| {
            let bytes = SHARED_LEAST << size;
            let room = (used * bytes).next_multiple_of(PAGE_BYTES) / bytes;
            SlabSlot { bytes, used: *used, free: room - used }
        };
        let slots = self.sharing.iter().enumerate().map(slot).collect();
        let pages_free = self.room / PAGE_BYTES;
        SlabUse { pages_used: self.pages - pages_free, pages_free, slots }
    }

    /// The number of entries of that rounded size, if they share pages.
    fn sharing_of(&mut self, bytes: u64) -> Option<&mut u64> {
        let size = bytes.max(SHARED_LEAST) / SHARED_LEAST;
        self.sharing.get_mut(size.ilog2() as usize)
    }

    /// The bytes of an entry with that key.
    fn bytes(&self, key: &[u8]) -> u64 {
        let bytes = self.entry_bytes + key.len() as u64;
        match bytes {
            0..=SHARING_MAX => bytes.next_power_of_two(),
            _ => bytes.next_multiple_of(PAGE_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of entries with keys of that length that fit.
    fn capacity(zone_bytes: u64, entry_bytes: u64, key: usize) -> usize {
        let mut table = Table::new(zone_bytes, entry_bytes);
        let keys = (0_u64..).map(|number| [&number.to_be_bytes()[..], &vec![0; key]].concat());
        keys.map_while(|text| table.insert(&text[8_usize.saturating_sub(key)..], ())).count()
    }

    #[test]
    fn a_zone_holds_as_many_entries_as_in_nginx() {
        // According to nginx's documentation, a megabyte has about 16 thousand states of 64 bytes
        // or 8 thousand of 128.
        assert_eq!(capacity(1 << 20, 36, 4), 16256);
        assert_eq!(capacity(1 << 20, 80, 4), 8128);
        assert_eq!(capacity(1 << 20, 80, 40), 8128);
        assert_eq!(capacity(1 << 20, 80, 41), 4064);
        assert_eq!(capacity(8 * PAGE_BYTES, 80, 2000), 7);
        assert_eq!(capacity(8 * PAGE_BYTES, 80, 5000), 3);
        assert_eq!(capacity(100, 80, 4), 0);
    }

    #[test]
    fn memory_is_told_in_pages_and_sizes() {
        let mut table = Table::new(10 * PAGE_BYTES, 36);
        let empty = table.memory();
        assert_eq!((empty.pages_used, empty.pages_free, empty.slots.len()), (0, 9, 9));
        let small = table.insert(b"192.0.2.7", ()).unwrap();
        let large = table.insert(&[b'x'; 5000], ()).unwrap();
        let of_size = |table: &Table<()>, bytes| {
            let memory = table.memory();
            *memory.slots.iter().find(|slot| slot.bytes == bytes).unwrap()
        };
        assert_eq!(of_size(&table, 64), SlabSlot { bytes: 64, used: 1, free: 63 });
        assert_eq!(of_size(&table, 2048), SlabSlot { bytes: 2048, used: 0, free: 0 });
        assert_eq!((table.memory().pages_used, table.memory().pages_free), (3, 6));
        table.remove(small);
        table.remove(large);
        assert_eq!(table.memory(), empty);
    }

    #[test]
    fn removed_entries_free_their_room() {
        let mut table = Table::new(8 * PAGE_BYTES, 80);
        for _ in 0..100_000 {
            let entry = table.insert(b"key", ()).unwrap();
            table.remove(entry);
        }
    }
}
