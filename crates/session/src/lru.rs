//! A map with the order of last use.
//!
//! Finding an entry allocates nothing, and neither does putting one in the place of another.

use std::collections::HashMap;
use std::sync::Arc;

const END: u32 = u32::MAX;

/// The map. Its slots are a list ordered by last use.
pub struct Lru<V> {
    by_key: HashMap<Arc<[u8]>, LruEntry>,
    slots: Vec<LruSlot<V>>,
    free: Vec<LruEntry>,
    newest: u32,
    oldest: u32,
}

/// An entry, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LruEntry(u32);

struct LruSlot<V> {
    key: Arc<[u8]>,
    value: Option<V>,
    newer: u32,
    older: u32,
}

impl<V> Default for Lru<V> {
    fn default() -> Self {
        let (by_key, slots, free) = (HashMap::new(), Vec::new(), Vec::new());
        Self { by_key, slots, free, newest: END, oldest: END }
    }
}

impl<V> Lru<V> {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The entry of a key.
    pub fn find(&self, key: &[u8]) -> Option<LruEntry> {
        self.by_key.get(key).copied()
    }

    /// The value, which becomes the one used last.
    pub fn get(&mut self, key: &[u8]) -> Option<&mut V> {
        let entry = self.find(key)?;
        self.touch(entry);
        Some(self.value(entry))
    }

    /// The value of an entry.
    pub fn value(&mut self, entry: LruEntry) -> &mut V {
        self.slots[entry.0 as usize].value.as_mut().expect("the entry is there")
    }

    /// The value of an entry that may have been removed. Another may have its place.
    pub fn live(&mut self, entry: LruEntry) -> Option<&mut V> {
        self.slots.get_mut(entry.0 as usize)?.value.as_mut()
    }

    /// The key of an entry.
    pub fn key(&self, entry: LruEntry) -> Arc<[u8]> {
        self.slots[entry.0 as usize].key.clone()
    }

    /// Makes it the one used last.
    pub fn touch(&mut self, entry: LruEntry) {
        if self.newest != entry.0 {
            self.unlink(entry);
            self.link(entry);
        }
    }

    /// The least recently used entry.
    pub fn oldest(&self) -> Option<LruEntry> {
        (self.oldest != END).then_some(LruEntry(self.oldest))
    }

    /// Puts a value in, in the place of an older one; it is the one used last.
    pub fn insert(&mut self, key: &[u8], value: V) -> LruEntry {
        if let Some(entry) = self.find(key) {
            self.touch(entry);
            *self.value(entry) = value;
            return entry;
        }
        let key: Arc<[u8]> = key.into();
        let slot = LruSlot { key: key.clone(), value: Some(value), newer: END, older: END };
        let entry = match self.free.pop() {
            Some(entry) => {
                self.slots[entry.0 as usize] = slot;
                entry
            }
            None => {
                self.slots.push(slot);
                LruEntry(self.slots.len() as u32 - 1)
            }
        };
        self.by_key.insert(key, entry);
        self.link(entry);
        entry
    }

    /// Takes an entry out: its key, and its value.
    pub fn remove(&mut self, entry: LruEntry) -> (Arc<[u8]>, Option<V>) {
        self.unlink(entry);
        let slot = &mut self.slots[entry.0 as usize];
        let (key, value) = (std::mem::take(&mut slot.key), slot.value.take());
        self.by_key.remove(&key);
        self.free.push(entry);
        (key, value)
    }

    /// Removes the least recently used entry. Returns whether there was one.
    pub fn remove_oldest(&mut self) -> bool {
        self.oldest().map(|entry| self.remove(entry)).is_some()
    }

    fn link(&mut self, entry: LruEntry) {
        let newest = self.newest;
        let slot = &mut self.slots[entry.0 as usize];
        (slot.newer, slot.older) = (END, newest);
        match self.slots.get_mut(newest as usize) {
            Some(before) => before.newer = entry.0,
            None => self.oldest = entry.0,
        }
        self.newest = entry.0;
    }

    fn unlink(&mut self, entry: LruEntry) {
        let slot = &self.slots[entry.0 as usize];
        let (newer, older) = (slot.newer, slot.older);
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
        let mut lru = Lru::new();
        let [a, b, c] = [b"a", b"b", b"c"].map(|key| lru.insert(key, key[0]));
        assert_eq!((lru.find(b"b"), lru.find(b"d")), (Some(b), None));
        assert_eq!(lru.oldest(), Some(a));
        lru.touch(a);
        assert_eq!(lru.oldest(), Some(b));
        lru.touch(a);
        let (key, value) = lru.remove(b);
        assert_eq!((&key[..], value), (&b"b"[..], Some(b'b')));
        assert_eq!((lru.find(b"b"), lru.oldest()), (None, Some(c)));
        assert_eq!(lru.insert(b"c", b'C'), c);
        let d = lru.insert(b"d", b'd');
        assert_eq!((*lru.value(c), *lru.value(a), *lru.value(d)), (b'C', b'a', b'd'));
        assert_eq!((lru.oldest(), lru.len()), (Some(a), 3));
        lru.remove(c);
        assert!(lru.remove_oldest() && lru.remove_oldest());
        assert!(!lru.remove_oldest() && lru.oldest().is_none());
    }

    #[test]
    fn slots_are_used_again() {
        let mut lru = Lru::new();
        for _ in 0..1000 {
            let entry = lru.insert(b"key", ());
            lru.remove(entry);
        }
        assert_eq!(lru.slots.len(), 1);
    }
}
