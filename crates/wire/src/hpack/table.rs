//! The dynamic table (RFC 7541, 2.3.2): fields in the order of their insertion, the oldest ones
//! evicted first.
//!
//! Names and values are stored one after the other in one buffer, new ones at its end. Once at
//! least half of the buffer is evicted, the rest moves to the front; so every byte moves at most
//! once on average, no entry is ever divided, and the buffer is at most twice as large as the
//! table.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::ENTRY_OVERHEAD_BYTES;

const BUFFER_BYTES_MIN: usize = 256;

/// The dynamic table of one direction.
pub(super) struct DynamicTable {
    buffer: Vec<u8>,
    /// The value of [`TableEntry::at`] at the front of `buffer`.
    front: u32,
    entries: VecDeque<TableEntry>,
    bytes: usize,
    bytes_max: usize,
    /// How many entries were ever inserted, which is also the number of the next one.
    inserted: u32,
}

struct TableEntry {
    /// Where the name begins; the value follows it. Counted from the first insertion, wrapping.
    at: u32,
    name_len: u32,
    value_len: u32,
    /// The number of an earlier entry, for the encoder's search.
    earlier: u32,
}

/// The result of a lookup in the table.
pub(super) struct FoundEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) earlier: u32,
}

impl DynamicTable {
    pub(super) fn new(bytes_max: usize) -> DynamicTable {
        DynamicTable {
            buffer: Vec::new(),
            front: 0,
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max,
            inserted: 0,
        }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
    }

    /// The entry that is `age` insertions older than the newest.
    pub(super) fn entry(&self, age: usize) -> Option<FoundEntry<'_>> {
        let index = self.entries.len().checked_sub(age + 1)?;
        let entry = &self.entries[index];
        let start = entry.at.wrapping_sub(self.front) as usize;
        let (name, rest) = self.buffer[start..].split_at(entry.name_len as usize);
        Some(FoundEntry { name, value: &rest[..entry.value_len as usize], earlier: entry.earlier })
    }

    /// The age of entry `number`, which may be evicted.
    pub(super) fn age_of(&self, number: u32) -> usize {
        self.inserted.wrapping_sub(number).wrapping_sub(1) as usize
    }

    /// Makes this the newest entry and returns its number. A field that does not fit empties the
    /// table (RFC 7541, 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], earlier: u32) -> Option<u32> {
        let bytes = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        let Some(others_max) = self.bytes_max.checked_sub(bytes) else {
            self.evict(0);
            return None;
        };
        self.evict(others_max);
        self.make_space(name.len() + value.len());
        let at = self.front.wrapping_add(self.buffer.len() as u32);
        self.buffer.extend_from_slice(name);
        self.buffer.extend_from_slice(value);
        let (name_len, value_len) = (name.len() as u32, value.len() as u32);
        self.entries.push_back(TableEntry { at, name_len, value_len, earlier });
        self.bytes += bytes;
        let number = self.inserted;
        self.inserted = number.wrapping_add(1);
        Some(number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Moves the entries to memory of the size they need. Shrinking in place would leave a small
    /// piece behind in the middle of free memory.
    pub(super) fn shrink(&mut self) {
        let live = self.bytes - self.entries.len() * ENTRY_OVERHEAD_BYTES;
        let evicted = self.buffer.len() - live;
        self.buffer = self.buffer[evicted..].to_vec();
        self.front = self.front.wrapping_add(evicted as u32);
        let mut entries = VecDeque::with_capacity(self.entries.len());
        entries.extend(self.entries.drain(..));
        self.entries = entries;
    }

    pub(super) fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            let Some(oldest) = self.entries.pop_front() else { return };
            let text = (oldest.name_len + oldest.value_len) as usize;
            self.bytes -= text + ENTRY_OVERHEAD_BYTES;
        }
    }

    fn make_space(&mut self, count: usize) {
        if self.buffer.capacity() - self.buffer.len() >= count {
            return;
        }
        let live = self.bytes - self.entries.len() * ENTRY_OVERHEAD_BYTES;
        let evicted = self.buffer.len() - live;
        if evicted >= live {
            self.buffer.drain(..evicted);
            self.front = self.front.wrapping_add(evicted as u32);
        }
        let len = self.buffer.len();
        let capacity = (len + count).next_power_of_two().max(BUFFER_BYTES_MIN);
        self.buffer.reserve_exact(capacity - len);
    }

    #[cfg(test)]
    pub(super) fn fields(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..).map_while(|age| self.entry(age)).map(|e| (e.name.into(), e.value.into())).collect()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> (usize, usize) {
        (self.bytes, self.buffer.capacity())
    }
}
