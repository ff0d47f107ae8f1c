//! A map of bounded size that forgets what was not used for longest.

use std::collections::HashMap;
use std::rc::Rc;

const END: u32 = u32::MAX;

/// The map. Indices are slots in a list ordered by last use.
pub(crate) struct Lru<V> {
    by_key: HashMap<Rc<[u8]>, u32>,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

struct Slot<V> {
    key: Rc<[u8]>,
    value: Option<V>,
    newer: u32,
    older: u32,
}

impl<V> Lru<V> {
    pub(crate) fn new() -> Self {
        let (by_key, slots, free) = (HashMap::new(), Vec::new(), Vec::new());
        Self { by_key, slots, free, newest: END, oldest: END }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The value, which becomes the newest.
    pub(crate) fn touch(&mut self, key: &[u8]) -> Option<&mut V> {
        let at = *self.by_key.get(key)?;
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
        self.slots[at as usize].value.as_mut()
    }

    /// The value that was not used for longest.
    pub(crate) fn oldest(&self) -> Option<(&[u8], &V)> {
        let slot = self.slots.get(self.oldest as usize)?;
        Some((&slot.key, slot.value.as_ref().expect("listed slots are filled")))
    }

    /// Puts a value in, in the place of an older one; it becomes the newest.
    pub(crate) fn insert(&mut self, key: &[u8], value: V) {
        if let Some(old) = self.touch(key) {
            *old = value;
            return;
        }
        let key: Rc<[u8]> = key.into();
        let slot = Slot { key: key.clone(), value: Some(value), newer: END, older: END };
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
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<V> {
        let at = self.by_key.remove(key)?;
        self.unlink(at);
        self.free.push(at);
        self.slots[at as usize].value.take()
    }

    pub(crate) fn pop_oldest(&mut self) -> Option<V> {
        let key = self.slots.get(self.oldest as usize)?.key.clone();
        self.remove(&key)
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
    use super::Lru;

    #[test]
    fn forgets_the_one_not_used_for_longest() {
        let mut lru = Lru::new();
        for key in [b"a", b"b", b"c"] {
            lru.insert(key, key[0]);
        }
        assert_eq!(lru.touch(b"a"), Some(&mut b'a'));
        assert_eq!(lru.oldest(), Some((&b"b"[..], &b'b')));
        lru.insert(b"b", b'B');
        assert_eq!(lru.pop_oldest(), Some(b'c'));
        assert_eq!(lru.remove(b"a"), Some(b'a'));
        lru.insert(b"d", b'd');
        assert_eq!(lru.len(), 2);
        assert_eq!((lru.pop_oldest(), lru.pop_oldest()), (Some(b'B'), Some(b'd')));
        assert_eq!((lru.pop_oldest(), lru.oldest()), (None, None));
    }
}
