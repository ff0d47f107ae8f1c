//! Entries by key in so much memory and no more, in order of last use.
//!
//! The room is counted as nginx's slab allocator counts it, so that a zone holds about as many
//! entries as an administrator has reckoned with. Finding an entry allocates nothing.

use std::collections::HashMap;
use std::sync::Arc;

/// nginx's page.
pub(crate) const PAGE: u64 = 4096;
/// What its allocator keeps of each page besides.
const PAGE_OVERHEAD: u64 = 24;
/// And of the whole.
const ZONE_OVERHEAD: u64 = 1024;
/// Entries up to this share a page, each in a power of two; larger ones have pages of their own.
const SHARING_MAX: u64 = PAGE / 2;

const END: u32 = u32::MAX;

/// The entries.
pub(crate) struct Table<V> {
    by_key: HashMap<Arc<[u8]>, u32>,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Bytes of an entry besides its key.
    entry_bytes: u64,
    /// Bytes left.
    room: u64,
}

/// An entry, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u32);

struct Slot<V> {
    key: Arc<[u8]>,
    value: V,
    newer: u32,
    older: u32,
}

impl<V> Table<V> {
    /// A table of entries that nginx needs `entry_bytes` for, besides their keys, in a zone of
    /// that size.
    pub(crate) fn new(zone_bytes: u64, entry_bytes: u64) -> Self {
        let pages = zone_bytes.saturating_sub(ZONE_OVERHEAD) / (PAGE + PAGE_OVERHEAD);
        Self {
            by_key: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: END,
            oldest: END,
            entry_bytes,
            room: pages * PAGE,
        }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<Entry> {
        self.by_key.get(key).copied().map(Entry)
    }

    pub(crate) fn value(&mut self, entry: Entry) -> &mut V {
        &mut self.slots[entry.0 as usize].value
    }

    /// Makes it the one used last.
    pub(crate) fn touch(&mut self, entry: Entry) {
        if self.newest != entry.0 {
            self.unlink(entry.0);
            self.link(entry.0);
        }
    }

    /// The one that was not used for longest.
    pub(crate) fn oldest(&self) -> Option<Entry> {
        (self.oldest != END).then_some(Entry(self.oldest))
    }

    /// Whether an entry with that key can be added.
    pub(crate) fn has_room(&self, key: &[u8]) -> bool {
        self.bytes(key) <= self.room
    }

    /// Adds an entry, the one used last; `None` where there is no room.
    pub(crate) fn insert(&mut self, key: &[u8], value: V) -> Option<Entry> {
        self.room = self.room.checked_sub(self.bytes(key))?;
        let key: Arc<[u8]> = key.into();
        let slot = Slot { key: key.clone(), value, newer: END, older: END };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.by_key.insert(key, at);
        self.link(at);
        Some(Entry(at))
    }

    pub(crate) fn remove(&mut self, entry: Entry) {
        self.unlink(entry.0);
        let key = std::mem::take(&mut self.slots[entry.0 as usize].key);
        self.by_key.remove(&key);
        self.free.push(entry.0);
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

    fn link(&mut self, at: u32) {
        let newest = self.newest;
        let slot = &mut self.slots[at as usize];
        (slot.newer, slot.older) = (END, newest);
        match self.slots.get_mut(newest as usize) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let (newer, older) = (self.slots[at as usize].newer, self.slots[at as usize].older);
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_and_go_in_order_of_use() {
        let mut table = Table::new(1 << 20, 80);
        let [a, b, c] = [b"a", b"b", b"c"].map(|key| table.insert(key, key[0]).unwrap());
        assert_eq!((table.find(b"b"), table.find(b"d")), (Some(b), None));
        assert_eq!(table.oldest(), Some(a));
        table.touch(a);
        assert_eq!(table.oldest(), Some(b));
        table.touch(a);
        table.remove(b);
        assert_eq!((table.find(b"b"), table.oldest()), (None, Some(c)));
        let d = table.insert(b"d", b'd').unwrap();
        assert_eq!((*table.value(c), *table.value(a), *table.value(d)), (b'c', b'a', b'd'));
        [c, a, d].into_iter().for_each(|entry| table.remove(entry));
        assert_eq!(table.oldest(), None);
    }

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
        assert_eq!(table.slots.len(), 1);
    }
}
