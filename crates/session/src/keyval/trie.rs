//! A persistent map: entries in a trie of their hashes. Cloning it is one reference count, and a
//! change to a clone copies the nodes on its path.
//!
//! A node has a slot for each value that five bits of the hash take among its entries. Below the
//! last bits, where all entries have the same hash, a node is a plain list.

use std::sync::Arc;

use super::entry::KeyvalEntry;

const BITS: u32 = 5;
const SLOTS: u32 = 1 << BITS;

#[derive(Clone, Debug, Default)]
pub(super) struct HashTrie {
    root: Arc<TrieNode>,
}

#[derive(Clone, Debug, Default)]
struct TrieNode {
    /// Which values of the five bits have a slot; without meaning in a list.
    occupied: u32,
    slots: Vec<TrieSlot>,
}

#[derive(Clone, Debug)]
enum TrieSlot {
    Leaf(Arc<KeyvalEntry>),
    /// More than one entry.
    Node(Arc<TrieNode>),
}

/// An entry that is looked for.
#[derive(Clone, Copy)]
pub(super) struct TrieKey<'k> {
    pub(super) hash: u64,
    pub(super) id: &'k [u8],
}

impl TrieKey<'_> {
    fn is_of(self, entry: &KeyvalEntry) -> bool {
        entry.hash == self.hash && entry.id() == self.id
    }
}

impl HashTrie {
    pub(super) fn find(&self, key: TrieKey<'_>) -> Option<&Arc<KeyvalEntry>> {
        let (mut node, mut shift) = (&self.root, 0);
        loop {
            match &node.slots[node.place(key, shift).ok()?] {
                TrieSlot::Leaf(entry) => return key.is_of(entry).then_some(entry),
                TrieSlot::Node(inner) => (node, shift) = (inner, shift + BITS),
            }
        }
    }

    /// Adds an entry; returns the one whose place it takes.
    pub(super) fn insert(&mut self, entry: Arc<KeyvalEntry>) -> Option<Arc<KeyvalEntry>> {
        TrieNode::insert(&mut self.root, entry, 0)
    }

    pub(super) fn remove(&mut self, key: TrieKey<'_>) -> Option<Arc<KeyvalEntry>> {
        // Without the entry, nothing is copied.
        self.find(key)?;
        TrieNode::remove(&mut self.root, key, 0)
    }

    /// Whether someone else has the trie as it is.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.root) > 1
    }

    pub(super) fn entries(&self) -> TrieEntries {
        TrieEntries(vec![(self.root.clone(), 0)])
    }

    /// The entries that only one of two tries has, by their addresses, and perhaps some that both
    /// have at different places. Nodes that both share are not looked at.
    pub(super) fn differences(before: &Self, after: &Self) -> (Entries, Entries) {
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        TrieNode::differences(&before.root, &after.root, 0, (&mut gone, &mut come));
        (gone, come)
    }
}

type Entries = Vec<Arc<KeyvalEntry>>;

impl TrieNode {
    /// The place of the slot for an entry, or else where it would be added.
    fn place(&self, key: TrieKey<'_>, shift: u32) -> Result<usize, usize> {
        let Some(rest) = key.hash.checked_shr(shift) else {
            let is_of = |slot: &TrieSlot| matches!(slot, TrieSlot::Leaf(own) if key.is_of(own));
            return self.slots.iter().position(is_of).ok_or(self.slots.len());
        };
        let bit = 1_u32 << (rest as u32 % SLOTS);
        let before = (self.occupied & (bit - 1)).count_ones() as usize;
        if self.occupied & bit == 0 { Err(before) } else { Ok(before) }
    }

    fn differences(
        before: &Arc<Self>,
        after: &Arc<Self>,
        shift: u32,
        (gone, come): (&mut Entries, &mut Entries),
    ) {
        if Arc::ptr_eq(before, after) {
            return;
        }
        if shift >= u64::BITS {
            before.slots.iter().for_each(|slot| slot.copy_to(gone));
            after.slots.iter().for_each(|slot| slot.copy_to(come));
            return;
        }
        for bit in (0..SLOTS).map(|place| 1 << place) {
            match (before.slot(bit), after.slot(bit)) {
                (Some(TrieSlot::Node(old)), Some(TrieSlot::Node(new))) => {
                    Self::differences(old, new, shift + BITS, (gone, come));
                }
                (Some(TrieSlot::Leaf(old)), Some(TrieSlot::Leaf(new))) if Arc::ptr_eq(old, new) => {
                }
                (old, new) => {
                    old.into_iter().for_each(|slot| slot.copy_to(gone));
                    new.into_iter().for_each(|slot| slot.copy_to(come));
                }
            }
        }
    }

    /// The slot of a bit, in a node that is no list.
    fn slot(&self, bit: u32) -> Option<&TrieSlot> {
        let at = (self.occupied & (bit - 1)).count_ones() as usize;
        (self.occupied & bit != 0).then(|| &self.slots[at])
    }

    fn bit(hash: u64, shift: u32) -> u32 {
        hash.checked_shr(shift).map_or(0, |rest| 1 << (rest as u32 % SLOTS))
    }

    fn insert(
        node: &mut Arc<Self>,
        entry: Arc<KeyvalEntry>,
        shift: u32,
    ) -> Option<Arc<KeyvalEntry>> {
        let key = TrieKey { hash: entry.hash, id: entry.id() };
        let place = node.place(key, shift);
        let node = Arc::make_mut(node);
        let slot = match place {
            Ok(at) => &mut node.slots[at],
            Err(at) => {
                node.occupied |= Self::bit(key.hash, shift);
                node.slots.insert(at, TrieSlot::Leaf(entry));
                return None;
            }
        };
        match slot {
            TrieSlot::Leaf(own) if key.is_of(own) => Some(std::mem::replace(own, entry)),
            TrieSlot::Leaf(own) => {
                let mut inner = Arc::default();
                Self::insert(&mut inner, own.clone(), shift + BITS);
                Self::insert(&mut inner, entry, shift + BITS);
                *slot = TrieSlot::Node(inner);
                None
            }
            TrieSlot::Node(inner) => Self::insert(inner, entry, shift + BITS),
        }
    }

    fn remove(node: &mut Arc<Self>, key: TrieKey<'_>, shift: u32) -> Option<Arc<KeyvalEntry>> {
        let at = node.place(key, shift).ok()?;
        let node = Arc::make_mut(node);
        let TrieSlot::Node(inner) = &mut node.slots[at] else {
            node.occupied &= !Self::bit(key.hash, shift);
            let TrieSlot::Leaf(entry) = node.slots.remove(at) else { return None };
            return Some(entry);
        };
        let removed = Self::remove(inner, key, shift + BITS);
        if let [only @ TrieSlot::Leaf(_)] = &inner.slots[..] {
            node.slots[at] = only.clone();
        }
        removed
    }
}

impl TrieSlot {
    fn copy_to(&self, out: &mut Entries) {
        match self {
            Self::Leaf(entry) => out.push(entry.clone()),
            Self::Node(node) => node.slots.iter().for_each(|slot| slot.copy_to(out)),
        }
    }
}

/// All entries of a trie as it was, in no particular order. Each node on the way has the place of
/// its next slot.
#[derive(Debug)]
pub(super) struct TrieEntries(Vec<(Arc<TrieNode>, usize)>);

impl Iterator for TrieEntries {
    type Item = Arc<KeyvalEntry>;

    fn next(&mut self) -> Option<Arc<KeyvalEntry>> {
        loop {
            let (node, at) = self.0.last_mut()?;
            let slot = node.slots.get(*at).cloned();
            *at += 1;
            match slot {
                Some(TrieSlot::Leaf(entry)) => return Some(entry),
                Some(TrieSlot::Node(inner)) => self.0.push((inner, 0)),
                None => drop(self.0.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entry(hash: u64, key: u32, value: u32) -> Arc<KeyvalEntry> {
        let (key, value) = (key.to_be_bytes().into(), value.to_be_bytes().into());
        Arc::new(KeyvalEntry { key, value, deadline_ms: None, hash, id: None })
    }

    /// Does what a map does, whatever the hashes.
    fn compare(hash: fn(u32) -> u64) {
        let (mut trie, mut map) = (HashTrie::default(), BTreeMap::new());
        let mut random = 1_u32;
        for round in 0..4000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = random >> 23;
            let id = key.to_be_bytes();
            let sought = TrieKey { hash: hash(key), id: &id };
            if random & 1 << 22 == 0 {
                let before = trie.insert(entry(hash(key), key, round));
                let value = |entry: Arc<KeyvalEntry>| entry.value.clone();
                assert_eq!(before.map(value), map.insert(key, round).map(as_value));
            } else {
                assert_eq!(trie.remove(sought).is_some(), map.remove(&key).is_some());
            }
            let found = trie.find(sought).map(|entry| entry.value.clone());
            assert_eq!(found, map.get(&key).copied().map(as_value));
        }
        let mut all: Vec<_> =
            trie.entries().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        all.sort();
        let expected = map.iter().map(|(key, value)| (as_value(*key), as_value(*value)));
        assert_eq!(all, expected.collect::<Vec<_>>());
        for key in map.into_keys() {
            assert!(trie.remove(TrieKey { hash: hash(key), id: &key.to_be_bytes() }).is_some());
        }
        assert!(trie.root.slots.is_empty() && trie.root.occupied == 0);
    }

    #[test]
    fn differences_of_two_tries_are_found() {
        for hash in [
            |key: u32| u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |key| u64::from(key % 3),
        ] {
            let mut trie = HashTrie::default();
            (0..500).for_each(|key| drop(trie.insert(entry(hash(key), key, 0))));
            let before = trie.clone();
            let (gone, come) = HashTrie::differences(&before, &trie);
            assert!(gone.is_empty() && come.is_empty());
            for key in [3, 77, 78] {
                trie.insert(entry(hash(key), key, 1));
                trie.insert(entry(hash(key + 1000), key + 1000, 1));
                let id = u32::to_be_bytes(key + 1);
                trie.remove(TrieKey { hash: hash(key + 1), id: &id });
            }
            let (gone, come) = HashTrie::differences(&before, &trie);
            let only = |own: &[Arc<KeyvalEntry>], other: &[Arc<KeyvalEntry>]| {
                let is_other =
                    |entry: &&Arc<KeyvalEntry>| !other.iter().any(|one| Arc::ptr_eq(one, entry));
                let mut keys: Vec<_> = own.iter().filter(is_other).map(|e| e.key.clone()).collect();
                keys.sort();
                keys
            };
            let keys = |keys: &[u32]| keys.iter().copied().map(as_value).collect::<Vec<_>>();
            assert_eq!(only(&gone, &come), keys(&[3, 4, 77, 78, 79]));
            assert_eq!(only(&come, &gone), keys(&[3, 77, 78, 1003, 1077, 1078]));
        }
    }

    fn as_value(number: u32) -> Box<[u8]> {
        number.to_be_bytes().into()
    }

    #[test]
    fn it_is_a_map_whatever_the_hashes() {
        compare(|key| u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        compare(|_| 7);
        compare(|key| u64::from(key % 3) << 60);
        compare(|key| u64::from(key) << 55);
    }

    #[test]
    fn a_clone_stays_as_it_was() {
        let mut trie = HashTrie::default();
        (0..100).for_each(|key| drop(trie.insert(entry(u64::from(key % 50), key, 0))));
        let before = trie.clone();
        (0..50).for_each(|key| {
            let id = u32::to_be_bytes(key);
            trie.remove(TrieKey { hash: u64::from(key), id: &id });
            trie.insert(entry(u64::from(key), key + 50, 1));
        });
        assert_eq!((before.entries().count(), trie.entries().count()), (100, 50));
        assert!(before.entries().all(|entry| *entry.value == 0_u32.to_be_bytes()));
    }
}
