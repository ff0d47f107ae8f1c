//! An entry of a table.

use super::change::KeyvalPair;

/// The bytes that an entry takes beyond its texts: itself, its part of the trie's nodes, and what
/// the allocator adds: 203 with 300,000 addresses as keys.
const ENTRY_BYTES: u64 = 192;

/// A key with its value. It never changes.
#[derive(Debug)]
pub struct KeyvalEntry {
    pub key: Box<[u8]>,
    pub value: Box<[u8]>,
    /// The time by [`net::clock::monotonic_ms`] from which on the entry is not there any more.
    pub deadline_ms: Option<u64>,
    pub(super) hash: u64,
    /// What makes the key the same as another, if it is not its text.
    pub(super) id: Option<Box<[u8]>>,
}

impl KeyvalEntry {
    pub(super) fn id(&self) -> &[u8] {
        self.id.as_deref().unwrap_or(&self.key)
    }

    pub(super) fn is_live(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_none_or(|deadline_ms| now_ms < deadline_ms)
    }

    pub(super) fn to_pair(&self) -> KeyvalPair {
        let (key, value) = (self.key.clone(), self.value.clone());
        KeyvalPair { key, value, deadline_ms: self.deadline_ms }
    }

    /// The bytes of memory that it counts for.
    pub(super) fn bytes(&self) -> u64 {
        let id = self.id.as_ref().map_or(0, |id| id.len());
        ENTRY_BYTES + (self.key.len() + self.value.len() + id) as u64
    }
}
