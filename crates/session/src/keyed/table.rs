//! Entries by key in so much memory and no more, in order of last use.
//!
//! The room is counted as nginx's slab allocator counts it, so that a zone holds about as many
//! entries as an administrator has reckoned with. Finding an entry allocates nothing.

use crate::lru::{Lru, LruEntry};

/// nginx's page.
pub(crate) const PAGE: u64 = 4096;
/// What its allocator keeps of each page besides.
const PAGE_OVERHEAD: u64 = 24;
/// And of the whole.
const ZONE_OVERHEAD: u64 = 1024;
/// Entries up to this share a page, each in a power of two; larger ones have pages of their own.
const SHARING_MAX: u64 = PAGE / 2;

/// The entries.
pub struct Table<V> {
    entries: Lru<V>,
    /// Bytes of an entry besides its key.
    entry_bytes: u64,
    /// Bytes left.
    room: u64,
}

impl<V> Table<V> {
    /// A table of entries that nginx needs `entry_bytes` for, besides their keys, in a zone of
    /// that size.
    pub fn new(zone_bytes: u64, entry_bytes: u64) -> Self {
        let pages = zone_bytes.saturating_sub(ZONE_OVERHEAD) / (PAGE + PAGE_OVERHEAD);
        Self { entries: Lru::new(), entry_bytes, room: pages * PAGE }
    }

    /// The entry with that key.
    pub fn find(&self, key: &[u8]) -> Option<LruEntry> {
        self.entries.find(key)
    }

    /// What an entry has.
    pub fn value(&mut self, entry: LruEntry) -> &mut V {
        self.entries.value(entry)
    }

    /// Makes it the one used last.
    pub fn touch(&mut self, entry: LruEntry) {
        self.entries.touch(entry);
    }

    /// The one that was not used for longest.
    pub fn oldest(&self) -> Option<LruEntry> {
        self.entries.oldest()
    }

    /// Whether an entry with that key can be added.
    pub fn has_room(&self, key: &[u8]) -> bool {
        self.bytes(key) <= self.room
    }

    /// Adds an entry with a new key, the one used last; `None` where there is no room.
    pub fn insert(&mut self, key: &[u8], value: V) -> Option<LruEntry> {
        self.room = self.room.checked_sub(self.bytes(key))?;
        Some(self.entries.insert(key, value))
    }

    /// Takes an entry out.
    pub fn remove(&mut self, entry: LruEntry) {
        let (key, _) = self.entries.remove(entry);
        self.room += self.bytes(&key);
    }

    /// What an entry takes of the room.
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

    /// How many entries with keys of that length fit.
    fn capacity(zone_bytes: u64, entry_bytes: u64, key: usize) -> usize {
        let mut table = Table::new(zone_bytes, entry_bytes);
        let keys = (0_u64..).map(|number| [&number.to_be_bytes()[..], &vec![0; key]].concat());
        keys.map_while(|text| table.insert(&text[8_usize.saturating_sub(key)..], ())).count()
    }

    #[test]
    fn the_room_is_nginxs() {
        // Its documentation: in a megabyte about 16 thousand states of 64 bytes, 8 of 128.
        assert_eq!(capacity(1 << 20, 36, 4), 16256);
        assert_eq!(capacity(1 << 20, 80, 4), 8128);
        assert_eq!(capacity(1 << 20, 80, 40), 8128);
        assert_eq!(capacity(1 << 20, 80, 41), 4064);
        assert_eq!(capacity(8 * PAGE, 80, 2000), 7);
        assert_eq!(capacity(8 * PAGE, 80, 5000), 3);
        assert_eq!(capacity(100, 80, 4), 0);
    }

    #[test]
    fn room_comes_back() {
        let mut table = Table::new(8 * PAGE, 80);
        for _ in 0..100_000 {
            let entry = table.insert(b"key", ()).unwrap();
            table.remove(entry);
        }
    }
}
