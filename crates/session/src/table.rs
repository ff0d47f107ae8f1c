//! Values by name, whatever the name's case: filled at load, only read afterwards.
//!
//! Made for names that clients send, on paths that every request takes: looking one up copies and
//! allocates nothing. Names come from the configuration, so nobody else decides which of them
//! collide.

/// A table. Open addressing, at most half full.
#[derive(Clone, Debug)]
pub struct HashTable<T> {
    /// Empty, or a power of two.
    buckets: Vec<HashBucket>,
    entries: Vec<(Box<[u8]>, T)>,
}

/// The hash of an entry, and its number counted from 1; 0 in a free bucket.
#[derive(Clone, Copy, Debug, Default)]
struct HashBucket {
    hash: u32,
    entry: u32,
}

impl<T> Default for HashTable<T> {
    fn default() -> Self {
        Self { buckets: Vec::new(), entries: Vec::new() }
    }
}

impl<T> HashTable<T> {
    /// Adds a value; false, and nothing is added, where the name has one.
    pub fn insert(&mut self, name: &[u8], value: T) -> bool {
        if self.find(name).is_some() {
            return false;
        }
        self.entries.push((name.into(), value));
        if self.entries.len() * 2 > self.buckets.len() {
            self.rebuild();
        } else {
            self.enter(self.entries.len() - 1);
        }
        true
    }

    /// The value of a name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&T> {
        let mask = self.buckets.len().checked_sub(1)?;
        let hash = hash(name);
        let mut at = hash as usize & mask;
        loop {
            let bucket = self.buckets[at];
            let entry = bucket.entry.checked_sub(1)?;
            if bucket.hash == hash {
                let (own, value) = &self.entries[entry as usize];
                if own.eq_ignore_ascii_case(name) {
                    return Some(value);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether it has no names.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn rebuild(&mut self) {
        let buckets = (self.entries.len() * 4).next_power_of_two();
        self.buckets = vec![HashBucket::default(); buckets];
        (0..self.entries.len()).for_each(|entry| self.enter(entry));
    }

    fn enter(&mut self, entry: usize) {
        let mask = self.buckets.len() - 1;
        let hash = hash(&self.entries[entry].0);
        let mut at = hash as usize & mask;
        while self.buckets[at].entry != 0 {
            at = (at + 1) & mask;
        }
        self.buckets[at] = HashBucket { hash, entry: entry as u32 + 1 };
    }
}

/// The same for names that differ in case only. The bit that tells small letters from capital ones
/// is set in every byte: what else that makes equal merely shares a bucket.
fn hash(name: &[u8]) -> u32 {
    const SMALL: u64 = 0x2020_2020_2020_2020;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = name.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    let hash = words.fold(name.len() as u64, |hash, word| {
        let product = u128::from(hash ^ u64::from_le_bytes(*word) | SMALL) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    });
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_whatever_its_case() {
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
    fn the_first_value_stays() {
        let mut table = HashTable::default();
        assert!(table.insert(b"", 1) && table.insert(b"a", 2) && !table.insert(b"A", 3));
        assert_eq!((table.find(b""), table.find(b"a")), (Some(&1), Some(&2)));
    }

    #[test]
    fn names_that_share_a_hash_stay_apart() {
        // "@" and "`" differ in the bit that hashing ignores.
        assert_eq!(hash(b"@"), hash(b"`"));
        let mut table = HashTable::default();
        assert!(table.insert(b"@", 1) && table.insert(b"`", 2));
        assert_eq!((table.find(b"@"), table.find(b"`")), (Some(&1), Some(&2)));
    }
}
