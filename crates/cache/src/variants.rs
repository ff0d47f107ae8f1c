//! Which variants a key has, so that their number has a bound.
//!
//! A key's list is in the shard of the key. All lists of a shard have a bound as well; above it,
//! they are forgotten, and keys count anew. Variants that an earlier process has stored are added
//! when they are used.

use std::collections::{HashMap, VecDeque};

use crate::key::KeyDigest;

/// The variants of the keys of a shard, without the first ones, which have the files of the keys.
#[derive(Debug, Default)]
pub(crate) struct VariantLists {
    lists: HashMap<KeyDigest, VecDeque<KeyDigest>>,
    /// The length of all lists.
    length: usize,
}

impl VariantLists {
    /// Adds a variant. Returns the oldest one if there are more than `most` now, among which the
    /// first one counts. `length_max` is the most that all lists may have.
    pub(crate) fn add(
        &mut self,
        main: &KeyDigest,
        variant: KeyDigest,
        most: usize,
        length_max: usize,
    ) -> Option<KeyDigest> {
        if self.length >= length_max {
            (self.lists, self.length) = (HashMap::new(), 0);
        }
        let list = self.lists.entry(*main).or_default();
        if list.contains(&variant) {
            return None;
        }
        list.push_back(variant);
        self.length += 1;
        let oldest = (list.len() >= most.max(1)).then(|| list.pop_front()).flatten();
        self.length -= usize::from(oldest.is_some());
        oldest
    }

    pub(crate) fn has(&self, main: &KeyDigest, variant: &KeyDigest) -> bool {
        self.lists.get(main).is_some_and(|list| list.contains(variant))
    }

    /// Removes the list of a key.
    pub(crate) fn take(&mut self, main: &KeyDigest) -> VecDeque<KeyDigest> {
        // Most keys have no variants, and most zones none.
        if self.length == 0 {
            return VecDeque::new();
        }
        let list = self.lists.remove(main).unwrap_or_default();
        self.length -= list.len();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> KeyDigest {
        KeyDigest::of(&number.to_le_bytes())
    }

    #[test]
    fn the_oldest_variant_goes_first() {
        let mut lists = VariantLists::default();
        let gone = [1, 2, 2, 3, 1].map(|number| lists.add(&key(0), key(number), 3, 100));
        // The first variant of all has the file of the key, so that two more have room.
        assert_eq!(gone, [None, None, None, Some(key(1)), Some(key(2))]);
        assert_eq!((lists.take(&key(0)).len(), lists.length), (2, 0));
        assert!(lists.take(&key(0)).is_empty());
    }

    #[test]
    fn all_lists_have_a_bound() {
        let mut lists = VariantLists::default();
        for number in 0..1000 {
            assert_eq!(lists.add(&key(number), key(number + 1000), 9, 10), None);
            assert!(lists.length <= 10 && lists.lists.len() <= 10);
        }
    }
}
