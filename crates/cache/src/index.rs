//! A shard of an index: its entries, found by digest in a time that does not depend on their
//! number.

use crate::key::KeyDigest;
use crate::queue::{EvictionQueues, NONE, QueueLinks};

/// The lists that entries are found in at first; doubled as they grow.
const CHAINS_MIN: usize = 16;

/// An entry of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) digest: KeyDigest,
    /// The inode of its file, to notice another one; without a file, the newest purge when its
    /// state was remembered.
    pub(crate) mark: u64,
    /// The blocks of 512 bytes of its file.
    pub(crate) blocks: u32,
    /// When it was last used, in seconds since 1970.
    pub(crate) used_s: u32,
    /// Until when its state is valid, if that is limited.
    pub(crate) until_s: u32,
    /// The requests for it so far.
    pub(crate) uses: u32,
    pub(crate) state: EntryState,
    links: QueueLinks,
    /// The next entry of the same chain, or the next free one.
    next: u32,
}

/// Entries decide how many keys fit in a zone.
const _: () = assert!(size_of::<IndexEntry>() <= 64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// Its requests are counted (`min_uses`).
    Counted,
    /// It has a file that this process has not read yet.
    Loaded,
    Stored,
    /// The reply was an error that has no file.
    Error(u16),
    /// The last reply could not be stored.
    Uncacheable,
}

/// An entry with a file, as the next process needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedEntry {
    pub(crate) digest: KeyDigest,
    pub(crate) blocks: u32,
    pub(crate) used_s: u32,
    pub(crate) uses: u32,
    /// Its place in the queues.
    pub(crate) queue: u8,
}

#[derive(Debug)]
pub(crate) struct IndexShard {
    entries: Vec<IndexEntry>,
    /// The first unused entry.
    free: u32,
    chains: Vec<u32>,
    queues: EvictionQueues,
    length: usize,
}

impl AsRef<QueueLinks> for IndexEntry {
    fn as_ref(&self) -> &QueueLinks {
        &self.links
    }
}

impl AsMut<QueueLinks> for IndexEntry {
    fn as_mut(&mut self) -> &mut QueueLinks {
        &mut self.links
    }
}

impl EntryState {
    pub(crate) fn has_file(self) -> bool {
        matches!(self, Self::Loaded | Self::Stored)
    }
}

impl IndexEntry {
    fn new(digest: KeyDigest, now_s: u32) -> Self {
        Self {
            digest,
            mark: 0,
            blocks: 0,
            used_s: now_s,
            until_s: 0,
            uses: 0,
            state: EntryState::Counted,
            links: QueueLinks::default(),
            next: NONE,
        }
    }

    /// Counts a request for it.
    pub(crate) fn count_use(&mut self, now_s: u32) {
        self.used_s = now_s;
        self.uses = self.uses.saturating_add(1);
        self.links.count_use();
    }
}

impl IndexShard {
    /// For about this many entries.
    pub(crate) fn new(entries: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            chains: vec![NONE; CHAINS_MIN],
            queues: EvictionQueues::new(entries),
            length: 0,
        }
    }

    pub(crate) fn find(&mut self, digest: &KeyDigest) -> Option<&mut IndexEntry> {
        let at = self.number_of(digest)?;
        Some(&mut self.entries[at as usize])
    }

    /// Adds an entry for a digest that has none.
    pub(crate) fn insert(&mut self, digest: &KeyDigest, now_s: u32) -> &mut IndexEntry {
        let at = self.place(digest, now_s);
        self.queues.add(&mut self.entries, at, fingerprint(digest));
        &mut self.entries[at as usize]
    }

    /// The same, in the place of the queues that [`IndexShard::in_order`] has told.
    pub(crate) fn restore(&mut self, digest: &KeyDigest, now_s: u32, queue: u8) -> &mut IndexEntry {
        let at = self.place(digest, now_s);
        self.queues.restore(&mut self.entries, at, queue);
        &mut self.entries[at as usize]
    }

    /// All entries in the order of their queues, each with its place there.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&IndexEntry, u8)> {
        let entries = self.queues.in_order(&self.entries).map(|at| &self.entries[at as usize]);
        entries.map(|entry| (entry, entry.links.to_byte()))
    }

    /// Puts a new entry into its chain, but in no queue.
    fn place(&mut self, digest: &KeyDigest, now_s: u32) -> u32 {
        if self.length == self.chains.len() {
            self.double_chains();
        }
        let entry = IndexEntry::new(*digest, now_s);
        let at = match self.free {
            NONE => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
            free => {
                self.free = self.entries[free as usize].next;
                self.entries[free as usize] = entry;
                free
            }
        };
        self.chain(at);
        self.length += 1;
        at
    }

    pub(crate) fn remove(&mut self, digest: &KeyDigest) -> Option<IndexEntry> {
        let at = self.number_of(digest)?;
        self.queues.remove(&mut self.entries, at);
        Some(self.release(at))
    }

    /// Removes the entry that is the least use to keep.
    pub(crate) fn evict(&mut self) -> Option<IndexEntry> {
        let of = |entries: &Vec<IndexEntry>, at: u32| fingerprint(&entries[at as usize].digest);
        let at = self.queues.evict(&mut self.entries, of)?;
        Some(self.release(at))
    }

    /// When the entry that is asked first whether it goes was last used.
    pub(crate) fn oldest_s(&self) -> Option<u32> {
        self.queues.first().map(|at| self.entries[at as usize].used_s)
    }

    /// The digest of an entry that was not used since, from number `at` on, and the number to go
    /// on with; at most `count` entries are looked at.
    pub(crate) fn unused(
        &self,
        at: usize,
        since_s: u32,
        count: usize,
    ) -> (Option<KeyDigest>, Option<usize>) {
        let end = self.entries.len().min(at.saturating_add(count));
        for (number, entry) in (at..end).zip(self.entries.get(at..end).unwrap_or_default()) {
            if entry.used_s <= since_s && self.number_of(&entry.digest) == Some(number as u32) {
                return (Some(entry.digest), Some(number + 1));
            }
        }
        (None, (end < self.entries.len()).then_some(end))
    }

    fn number_of(&self, digest: &KeyDigest) -> Option<u32> {
        let mut at = self.chains[self.chain_of(digest)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.digest == *digest {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    fn chain(&mut self, at: u32) {
        let chain = self.chain_of(&self.entries[at as usize].digest);
        self.entries[at as usize].next = std::mem::replace(&mut self.chains[chain], at);
    }

    /// Takes an entry that is in no queue out of its chain, and frees its place.
    fn release(&mut self, at: u32) -> IndexEntry {
        let entry = self.entries[at as usize];
        let chain = self.chain_of(&entry.digest);
        let mut before = self.chains[chain];
        if before == at {
            self.chains[chain] = entry.next;
        } else {
            while self.entries[before as usize].next != at {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = entry.next;
        }
        self.entries[at as usize].next = std::mem::replace(&mut self.free, at);
        self.length -= 1;
        entry
    }

    fn double_chains(&mut self) {
        let heads = std::mem::take(&mut self.chains);
        self.chains = vec![NONE; 2 * heads.len()];
        for head in heads {
            let mut at = head;
            while at != NONE {
                let next = self.entries[at as usize].next;
                self.chain(at);
                at = next;
            }
        }
    }

    fn chain_of(&self, digest: &KeyDigest) -> usize {
        fingerprint(digest) as usize & (self.chains.len() - 1)
    }
}

/// A part of the digest that does not choose the shard.
fn fingerprint(digest: &KeyDigest) -> u32 {
    let [first, second, third, fourth, ..] = digest.0;
    u32::from_le_bytes([first, second, third, fourth])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn digest(number: u32) -> KeyDigest {
        KeyDigest::of(&number.to_le_bytes())
    }

    #[test]
    fn entries_are_found_until_they_are_removed() {
        let mut shard = IndexShard::new(100);
        for number in 0..500 {
            shard.insert(&digest(number), number);
        }
        for number in (0..500).step_by(3) {
            assert!(shard.remove(&digest(number)).is_some());
            assert!(shard.remove(&digest(number)).is_none());
        }
        for number in 500..600 {
            shard.insert(&digest(number), number);
        }
        for number in 0..600 {
            let expected = (number >= 500 || number % 3 != 0).then_some(number);
            assert_eq!(shard.find(&digest(number)).map(|entry| entry.used_s), expected);
        }
        // The places of removed entries were used again.
        assert_eq!(shard.entries.len(), 500);
    }

    #[test]
    fn every_entry_is_evicted_once() {
        let mut shard = IndexShard::new(100);
        (0..300).for_each(|number| {
            shard.insert(&digest(number), 0);
        });
        (0..100).for_each(|number| shard.find(&digest(number)).unwrap().count_use(1));
        let gone: HashSet<_> = std::iter::from_fn(|| shard.evict()).map(|e| e.digest).collect();
        assert_eq!((gone.len(), shard.length), (300, 0));
        assert_eq!(shard.oldest_s(), None);
    }

    #[test]
    fn the_sweep_finds_unused_entries_in_steps() {
        let mut shard = IndexShard::new(100);
        for number in 0..50 {
            shard.insert(&digest(number), number);
        }
        shard.remove(&digest(2));
        let (mut at, mut found) = (Some(0), 0);
        while let Some(from) = at {
            let (digest, next) = shard.unused(from, 9, 7);
            found += usize::from(digest.is_some());
            at = next;
        }
        assert_eq!(found, 9);
    }
}
