//! The table of a zone: entries by key, bounded in bytes.
//!
//! Cloning a table is cheap, and a clone stays as it was: readers keep one, and whoever decides on
//! changes tries them on one. The caller says what time it is.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use super::change::{KeyvalOperation, KeyvalPair};
use super::entry::KeyvalEntry;
use super::key::{self, KeyvalType, VALUE_BYTES_MAX};
use super::lengths::KeyLengths;
use super::refusal::KeyvalRefusal;
use super::trie::{HashTrie, TrieEntries, TrieKey};
use crate::slabs::SlabUse;

/// The table of a zone.
#[derive(Clone, Debug)]
pub struct KeyvalTable {
    pub(super) kind: KeyvalType,
    bytes_max: u64,
    bytes: u64,
    count: usize,
    /// The number of entries with a deadline.
    mortal: usize,
    /// The changes since entries that had ended were last removed.
    unswept: usize,
    entries: HashTrie,
    lengths: KeyLengths,
    hasher: RandomState,
}

/// An entry before and after a change.
pub(super) type KeyvalDifference = (Option<Arc<KeyvalEntry>>, Option<Arc<KeyvalEntry>>);

/// Fewer changes than this are not worth a search for entries that have ended.
const SWEEP_MIN: usize = 64;

impl KeyvalTable {
    pub fn new(kind: KeyvalType, bytes_max: u64) -> Self {
        Self {
            kind,
            bytes_max,
            bytes: 0,
            count: 0,
            mortal: 0,
            unswept: 0,
            entries: HashTrie::default(),
            lengths: KeyLengths::default(),
            hasher: RandomState::new(),
        }
    }

    /// The entry that matches a text.
    pub fn find(&self, text: &[u8], now_ms: u64) -> Option<&KeyvalEntry> {
        match self.kind {
            KeyvalType::String => self.live(self.hash(text), text, now_ms),
            KeyvalType::Ip => self.find_network(text, now_ms),
            KeyvalType::Prefix => self.find_prefix(text, now_ms),
        }
    }

    /// The entry with exactly that key.
    pub fn get(&self, key: &[u8], now_ms: u64) -> Option<&KeyvalEntry> {
        let id = self.kind.id(key);
        let id = id.as_ref().map_or(key, |id| id.as_bytes());
        self.live(self.hash(id), id, now_ms)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self, now_ms: u64) -> bool {
        self.live_entries(now_ms).next().is_none()
    }

    /// All entries, in no particular order.
    pub fn live_entries(&self, now_ms: u64) -> impl Iterator<Item = Arc<KeyvalEntry>> + use<> {
        self.all().filter(move |entry| entry.is_live(now_ms))
    }

    /// Makes a change. An error leaves the table as it was.
    pub fn apply(&mut self, operation: &KeyvalOperation, now_ms: u64) -> Result<(), KeyvalRefusal> {
        let mut next = match operation {
            KeyvalOperation::Put(_)
            | KeyvalOperation::Remove(_)
            | KeyvalOperation::Merge { .. } => self.clone(),
            // With the same hashes, so that it can be compared with what was there before.
            KeyvalOperation::Clear | KeyvalOperation::Replace(_) => {
                Self { hasher: self.hasher.clone(), ..Self::new(self.kind, self.bytes_max) }
            }
        };
        match operation {
            KeyvalOperation::Put(pairs) | KeyvalOperation::Replace(pairs) => {
                pairs.iter().try_for_each(|pair| next.put(pair, now_ms))?;
            }
            KeyvalOperation::Remove(key) => next.remove(key),
            KeyvalOperation::Clear => {}
            KeyvalOperation::Merge { put, removed } => {
                removed.iter().for_each(|key| next.remove(key));
                put.iter().try_for_each(|pair| next.put(pair, now_ms))?;
            }
        }
        next.unswept += 1;
        if next.unswept > next.count.max(SWEEP_MIN) {
            next.sweep(now_ms);
        }
        *self = next;
        Ok(())
    }

    /// All entries as they are now, as a change that makes another table the same.
    pub fn to_operation(&self, now_ms: u64) -> KeyvalOperation {
        let pairs = self.live_entries(now_ms).map(|entry| entry.to_pair());
        KeyvalOperation::Replace(pairs.collect())
    }

    /// The entries that are different in an earlier state of this table: as they were, and as they
    /// are. What both states share is not looked at, so that this costs no more than the changes.
    pub(super) fn changes_since(&self, before: &Self) -> Vec<KeyvalDifference> {
        let (gone, come) = HashTrie::differences(&before.entries, &self.entries);
        let id = |entry: &Arc<KeyvalEntry>| Box::<[u8]>::from(entry.id());
        let mut changes: HashMap<_, KeyvalDifference> =
            gone.into_iter().map(|entry| (id(&entry), (Some(entry), None))).collect();
        for entry in come {
            let (_, new) = changes.entry(id(&entry)).or_default();
            *new = Some(entry);
        }
        changes.into_values().filter(|(old, new)| !is_same(old, new)).collect()
    }

    /// The memory that its entries take, and how much more they may.
    pub fn memory(&self) -> SlabUse {
        SlabUse::of_bytes(self.bytes, self.bytes_max)
    }

    /// Whether someone else has the table as it is.
    pub(super) fn is_shared(&self) -> bool {
        self.entries.is_shared()
    }

    pub(super) fn all(&self) -> TrieEntries {
        self.entries.entries()
    }

    /// Adds an entry, or replaces the one with the same key.
    pub(super) fn put(&mut self, pair: &KeyvalPair, now_ms: u64) -> Result<(), KeyvalRefusal> {
        let entry = self.entry(pair)?;
        let key = TrieKey { hash: entry.hash, id: entry.id() };
        let bytes = entry.bytes();
        if !self.has_room(key, bytes) {
            self.sweep(now_ms);
            if !self.has_room(key, bytes) {
                return Err(KeyvalRefusal::full(self.bytes_max, self.count));
            }
        }
        self.bytes += bytes;
        self.count += 1;
        self.mortal += usize::from(entry.deadline_ms.is_some());
        self.kind.length(entry.id()).into_iter().for_each(|length| self.lengths.add(length));
        if let Some(old) = self.entries.insert(Arc::new(entry)) {
            self.uncount(&old);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        let id = self.kind.id(key);
        let id = id.as_ref().map_or(key, |id| id.as_bytes());
        if let Some(old) = self.entries.remove(TrieKey { hash: self.hash(id), id }) {
            self.uncount(&old);
        }
    }

    fn entry(&self, pair: &KeyvalPair) -> Result<KeyvalEntry, KeyvalRefusal> {
        let KeyvalPair { key, value, deadline_ms } = pair;
        self.kind.check(key)?;
        if value.len() > VALUE_BYTES_MAX {
            let text = format!("the value is longer than {VALUE_BYTES_MAX} bytes");
            return Err(KeyvalRefusal::format(text));
        }
        let id: Option<Box<[u8]>> = self.kind.id(key).map(|id| id.as_bytes().into());
        let hash = self.hash(id.as_deref().unwrap_or(key));
        let (key, value) = (key.clone(), value.clone());
        Ok(KeyvalEntry { key, value, deadline_ms: *deadline_ms, hash, id })
    }

    fn has_room(&self, key: TrieKey<'_>, bytes: u64) -> bool {
        let replaced = self.entries.find(key).map_or(0, |old| old.bytes());
        self.bytes - replaced + bytes <= self.bytes_max
    }

    /// Removes the entries that have ended.
    fn sweep(&mut self, now_ms: u64) {
        self.unswept = 0;
        if self.mortal == 0 {
            return;
        }
        for entry in self.all().filter(|entry| !entry.is_live(now_ms)) {
            self.entries.remove(TrieKey { hash: entry.hash, id: entry.id() });
            self.uncount(&entry);
        }
    }

    fn uncount(&mut self, entry: &KeyvalEntry) {
        self.bytes -= entry.bytes();
        self.count -= 1;
        self.mortal -= usize::from(entry.deadline_ms.is_some());
        self.kind.length(entry.id()).into_iter().for_each(|length| self.lengths.remove(length));
    }

    fn live(&self, hash: u64, id: &[u8], now_ms: u64) -> Option<&KeyvalEntry> {
        let entry = self.entries.find(TrieKey { hash, id })?;
        entry.is_live(now_ms).then_some(&**entry)
    }

    fn find_network(&self, text: &[u8], now_ms: u64) -> Option<&KeyvalEntry> {
        let network = key::network(text)?;
        key::networks_around(network, self.lengths.iter()).find_map(|id| {
            let id = id.as_bytes();
            self.live(self.hash(id), id, now_ms)
        })
    }

    /// Hashes the text once: the hash of each prefix comes by the way.
    fn find_prefix(&self, text: &[u8], now_ms: u64) -> Option<&KeyvalEntry> {
        let (mut hasher, mut start, mut found) = (self.hasher.build_hasher(), 0, None);
        for end in self.lengths.iter().map(usize::from).take_while(|end| *end <= text.len()) {
            hasher.write(&text[start..end]);
            start = end;
            found = self.live(hasher.finish(), &text[..end], now_ms).or(found);
        }
        found
    }

    fn hash(&self, id: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(id);
        hasher.finish()
    }
}

/// Whether it is the same entry, perhaps at another place.
fn is_same(old: &Option<Arc<KeyvalEntry>>, new: &Option<Arc<KeyvalEntry>>) -> bool {
    let pair = |entry: &Option<Arc<KeyvalEntry>>| entry.as_ref().map(|entry| entry.to_pair());
    match (old, new) {
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) => true,
        _ => pair(old) == pair(new),
    }
}
