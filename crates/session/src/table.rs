//! Values by name, without regard to case: filled at load, and only read afterwards.
//!
//! It is made for names that clients send on every request: a lookup neither copies nor allocates.
//! The names come from the configuration, so clients cannot cause collisions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// A hash table with open addressing, at most half full.
#[derive(Clone, Debug)]
pub struct HashTable<T> {
    /// Empty, or with a length that is a power of two.
    buckets: Vec<HashBucket>,
    entries: Vec<HashEntry<T>>,
    /// The names of all entries, concatenated. Separate allocations would dominate the time to load
    /// a hundred thousand names.
    names: Vec<u8>,
}

/// The hash of an entry, and its number counted from 1; 0 in a free bucket.
#[derive(Clone, Copy, Debug, Default)]
struct HashBucket {
    hash: u32,
    entry: u32,
}

#[derive(Clone, Debug)]
struct HashEntry<T> {
    /// The range of the name in `names`; the names of a configuration fit in 4 GB.
    name: Range<u32>,
    value: T,
}

impl<T> Default for HashTable<T> {
    fn default() -> Self {
        Self { buckets: Vec::new(), entries: Vec::new(), names: Vec::new() }
    }
}

impl<T> HashTable<T> {
    /// Adds a value; false, without a change, if the name exists.
    pub fn insert(&mut self, name: &[u8], value: T) -> bool {
        let hash = hash(name);
        if self.look(name, hash).is_some() {
            return false;
        }
        let start = self.names.len() as u32;
        self.names.extend_from_slice(name);
        self.entries.push(HashEntry { name: start..self.names.len() as u32, value });
        if self.entries.len() * 2 > self.buckets.len() {
            self.grow();
        }
        self.enter(HashBucket { hash, entry: self.entries.len() as u32 });
        true
    }

    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&T> {
        self.look(name, hash(name))
    }

    #[inline]
    fn look(&self, name: &[u8], hash: u32) -> Option<&T> {
        let mask = self.buckets.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let bucket = self.buckets[at];
            let entry = bucket.entry.checked_sub(1)?;
            if bucket.hash == hash {
                let HashEntry { name: own, value } = &self.entries[entry as usize];
                if self.names[own.start as usize..own.end as usize].eq_ignore_ascii_case(name) {
                    return Some(value);
                }
            }
            at = (at + 1) & mask;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn grow(&mut self) {
        let count = (self.entries.len() * 4).next_power_of_two();
        let old = std::mem::replace(&mut self.buckets, vec![HashBucket::default(); count]);
        old.into_iter().filter(|bucket| bucket.entry != 0).for_each(|bucket| self.enter(bucket));
    }

    fn enter(&mut self, bucket: HashBucket) {
        let mask = self.buckets.len() - 1;
        let mut at = bucket.hash as usize & mask;
        while self.buckets[at].entry != 0 {
            at = (at + 1) & mask;
        }
        self.buckets[at] = bucket;
    }
}

/// A map by texts of the configuration, for use while it is read.
pub(crate) type TextMap<'t, V> = HashMap<&'t [u8], V, BuildHasherDefault<TextHasher>>;

/// A hash without protection against chosen collisions: the texts come from the configuration.
#[derive(Default)]
pub(crate) struct TextHasher(u64);

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fold(self.0, bytes, 0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The hash of a name, equal for names that differ only in case: the bit that distinguishes lower
/// from upper case is set in every byte. Other bytes that this makes equal merely collide.
fn hash(name: &[u8]) -> u32 {
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let hash = fold(name.len() as u64, name, SMALL);
    (hash ^ hash >> 32) as u32
}

/// Continues a hash. `blind` has the bits of each word that are ignored.
fn fold(hash: u64, bytes: &[u8], blind: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    words.fold(hash, |hash, word| {
        let product = u128::from(hash ^ u64::from_le_bytes(*word) | blind) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        let mut table = HashTable::default();
        assert!(table.is_empty() && table.find(b"").is_none());
        let names: Vec<String> =
            (0..1000).map(|n| format!("{}-Name", "x".repeat(n % 37))).collect();
        for (value, name) in names.iter().enumerate() {
            assert_eq!(table.insert(name.as_bytes(), value), value < 37, "{name}");
        }
        for (value, name) in names.iter().take(37).enumerate() {
            assert_eq!(table.find(name.to_ascii_uppercase().as_bytes()), Some(&value));
            assert_eq!(table.find(name.to_ascii_lowercase().as_bytes()), Some(&value));
            assert_eq!(table.find(format!("{name}!").as_bytes()), None);
        }
    }

    #[test]
    fn the_first_value_is_kept() {
        let mut table = HashTable::default();
        assert!(table.insert(b"", 1) && table.insert(b"a", 2) && !table.insert(b"A", 3));
        assert_eq!((table.find(b""), table.find(b"a")), (Some(&1), Some(&2)));
    }

    #[test]
    fn names_with_equal_hashes_are_distinct() {
        // "@" and "`" differ in the bit that hashing ignores.
        assert_eq!(hash(b"@"), hash(b"`"));
        let mut table = HashTable::default();
        assert!(table.insert(b"@", 1) && table.insert(b"`", 2));
        assert_eq!((table.find(b"@"), table.find(b"`")), (Some(&1), Some(&2)));
    }
}
