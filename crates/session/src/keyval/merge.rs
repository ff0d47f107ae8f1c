//! Changes that other machines have made, on their way to the process that decides.
//!
//! They were compared with the table as a worker process had it. A key that has been changed here
//! in the meantime is left out: the next comparison decides about that change.

use conf::Subsystem;

use super::change::{KeyvalOperation, KeyvalPair, read_text, write_text};
use super::change::{read_subsystem, write_subsystem};
use super::entry::KeyvalEntry;
use super::table::KeyvalTable;

/// Two times of the same end, converted by different processes, are no further apart.
const SAME_END_MS: u64 = 2000;

/// Changes of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyvalMerge {
    pub subsystem: Subsystem,
    pub zone: Box<[u8]>,
    pub keys: Vec<MergedKey>,
}

/// A change of one key: it has one of the two entries at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedKey {
    /// The entry that it replaces.
    pub(super) before: Option<KeyvalPair>,
    /// The entry from then on; `None`: the key is removed.
    pub(super) after: Option<KeyvalPair>,
}

impl KeyvalMerge {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_subsystem(self.subsystem, &mut out);
        write_text(&self.zone, &mut out);
        for MergedKey { before, after } in &self.keys {
            for pair in [before, after] {
                out.push(pair.is_some().into());
                pair.iter().for_each(|pair| pair.write(&mut out));
            }
        }
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let (subsystem, zone) = (read_subsystem(&mut bytes)?, read_text(&mut bytes)?);
        let mut keys = Vec::new();
        while !bytes.is_empty() {
            let (before, after) = (read_pair(&mut bytes)?, read_pair(&mut bytes)?);
            keys.push(MergedKey { before, after });
        }
        Some(Self { subsystem, zone, keys })
    }
}

fn read_pair(bytes: &mut &[u8]) -> Option<Option<KeyvalPair>> {
    let (is_there, rest) = bytes.split_first()?;
    *bytes = rest;
    if *is_there == 0 { Some(None) } else { KeyvalPair::read(bytes).map(Some) }
}

impl MergedKey {
    /// About the bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        let pairs = [&self.before, &self.after];
        pairs.into_iter().flatten().map(|pair| pair.key.len() + pair.value.len() + 32).sum()
    }

    fn key(&self) -> Option<&[u8]> {
        self.after.as_ref().or(self.before.as_ref()).map(|pair| &*pair.key)
    }
}

impl KeyvalTable {
    /// Makes the changes that still apply, each for itself: those for which there is no room are
    /// left out. Returns what was changed, for the other processes; `None`: nothing.
    pub fn merge(&mut self, keys: Vec<MergedKey>, now_ms: u64) -> Option<KeyvalOperation> {
        let (mut put, mut removed) = (Vec::new(), Vec::new());
        for merged in keys {
            let Some(key) = merged.key() else { continue };
            let is_live = |pair: &&KeyvalPair| pair.deadline_ms.is_none_or(|at| now_ms < at);
            let before = merged.before.as_ref().filter(is_live);
            if !is_same(self.get(key, now_ms).map(KeyvalEntry::to_pair).as_ref(), before) {
                continue;
            }
            match merged.after {
                Some(pair) if self.put(&pair, now_ms).is_ok() => put.push(pair),
                Some(_) => {}
                None => {
                    self.remove(key);
                    removed.push(key.into());
                }
            }
        }
        let is_changed = !put.is_empty() || !removed.is_empty();
        is_changed.then_some(KeyvalOperation::Merge { put, removed })
    }
}

/// Whether two entries are the same, at two nodes or in two processes that have read a file.
pub(super) fn is_same(one: Option<&KeyvalPair>, other: Option<&KeyvalPair>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    let is_same_end = match (one.deadline_ms, other.deadline_ms) {
        (Some(one), Some(other)) => one.abs_diff(other) <= SAME_END_MS,
        (one, other) => one == other,
    };
    one.value == other.value && is_same_end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyval::KeyvalType;

    #[test]
    fn changes_apply_to_the_entries_that_they_were_decided_for() {
        let pair = |key: &str, value: &str, deadline_ms| KeyvalPair {
            key: key.as_bytes().into(),
            value: value.as_bytes().into(),
            deadline_ms,
        };
        let mut table = KeyvalTable::new(KeyvalType::String, 1 << 16);
        let pairs = vec![pair("a", "1", Some(9000)), pair("b", "1", None), pair("c", "1", None)];
        table.apply(&KeyvalOperation::Put(pairs), 0).unwrap();
        let merged = |before, after| MergedKey { before, after };
        let keys = vec![
            // Another process has read the file at another moment.
            merged(Some(pair("a", "1", Some(9003))), Some(pair("a", "2", None))),
            merged(Some(pair("b", "before", None)), Some(pair("b", "2", None))),
            merged(Some(pair("c", "1", None)), None),
            merged(None, Some(pair("d", "2", None))),
        ];
        let (put, removed) = (vec![pair("a", "2", None), pair("d", "2", None)], (*b"c").into());
        let expected = KeyvalOperation::Merge { put, removed: vec![removed] };
        assert_eq!(table.merge(keys.clone(), 0), Some(expected));
        assert_eq!(table.merge(keys, 0), None, "they were made");
    }
}
