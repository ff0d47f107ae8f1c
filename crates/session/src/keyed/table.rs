//! Entries by key in a limited amount of memory, in order of last use.
//!
//! Memory is counted as by nginx's slab allocator, so that a zone holds about as many entries as in
//! nginx. Finding an entry allocates nothing.

use crate::lru::{Lru, LruEntry};

/// The size of nginx's pages.
pub(crate) const PAGE: u64 = 4096;
/// The bytes that nginx's allocator uses for each page.
const PAGE_OVERHEAD: u64 = 24;
/// The bytes that it uses for a zone.
const ZONE_OVERHEAD: u64 = 1024;
/// Entries up to this size share pages and are rounded up to a power of two; larger entries have
/// their own pages.
const SHARING_MAX: u64 = PAGE / 2;

pub struct Table<V> {
    entries: Lru<V>,
    /// The bytes of an entry without its key.
    entry_bytes: u64,
    /// The bytes left.
    room: u64,
}

impl<V> Table<V> {
    /// A table in a zone of `zone_bytes` for entries that take `entry_bytes` in nginx, without
    /// their keys.
    pub fn new(zone_bytes: u64, entry_bytes: u64) -> Self {
        let pages = zone_bytes.saturating_sub(ZONE_OVERHEAD) / (PAGE + PAGE_OVERHEAD);
        Self { entries: Lru::new(), entry_bytes, room: pages * PAGE }
    }

    /// The entry with a key.
    pub fn find(&self, key: &[u8]) -> Option<LruEntry> {
        self.entries.find(key)
    }

    /// The value of an entry.
    pub fn value(&mut self, entry: LruEntry) -> &mut V {
        self.entries.value(entry)
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
        self.room = self.room.checked_sub(self.bytes(key))?;
        Some(self.entries.insert(key, value))
    }

    pub fn remove(&mut self, entry: LruEntry) {
        let (key, _) = self.entries.remove(entry);
        self.room += self.bytes(&key);
    }

    /// The bytes of an entry with that key.
    fn bytes(&self, key: &[u8]) -> u64 {
        let bytes = self.entry_bytes + key.len() as u64;
        match bytes {
            0..=SHARING_MAX => bytes.next_power_of_two(),
            _ => bytes.next_multiple_of(PAGE),
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
        assert_eq!(capacity(8 * PAGE, 80, 2000), 7);
        assert_eq!(capacity(8 * PAGE, 80, 5000), 3);
        assert_eq!(capacity(100, 80, 4), 0);
    }

    #[test]
    fn removed_entries_free_their_room() {
        let mut table = Table::new(8 * PAGE, 80);
        for _ in 0..100_000 {
            let entry = table.insert(b"key", ()).unwrap();
            table.remove(entry);
        }
    }
}
