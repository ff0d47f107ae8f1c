//! The number of current sessions by key, and a session's part in it.

use std::sync::Arc;

use crate::keyed::{Counted, KeyedCounts, Table};
use crate::lru::LruEntry;
use crate::slabs::SlabUse;

/// The bytes of nginx's entry without its key.
const ENTRY_BYTES: u64 = 36;

/// The counts of a zone.
pub struct Counts {
    table: Table<u32>,
}

impl Counted for Counts {
    const DIRECTIVE: &'static str = "limit_conn_zone";
    const KIND: &'static str = "limit_conn_zone";
    fn new(zone_bytes: u64) -> Self {
        Self { table: Table::new(zone_bytes, ENTRY_BYTES) }
    }

    fn memory(&self) -> SlabUse {
        self.table.memory()
    }
}

/// The reason why a session is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountExceeded {
    /// The key has the allowed number of sessions already.
    Limit,
    /// The zone has no room for another key.
    Room,
}

/// One session in the count of a zone, until it is dropped.
pub struct CountedKeys {
    state: Arc<KeyedCounts<Counts>>,
    entry: LruEntry,
}

impl CountedKeys {
    /// Counts a session; an error if `most` sessions have that key already.
    pub fn take(
        state: &Arc<KeyedCounts<Counts>>,
        key: &[u8],
        most: u32,
    ) -> Result<Self, CountExceeded> {
        let table = &mut state.lock().table;
        let entry = match table.find(key) {
            Some(entry) => {
                let count = table.value(entry);
                if *count >= most {
                    return Err(CountExceeded::Limit);
                }
                *count += 1;
                entry
            }
            None => table.insert(key, 1).ok_or(CountExceeded::Room)?,
        };
        Ok(Self { state: state.clone(), entry })
    }
}

impl Drop for CountedKeys {
    fn drop(&mut self) {
        let table = &mut self.state.lock().table;
        let count = table.value(self.entry);
        *count -= 1;
        if *count == 0 {
            table.remove(self.entry);
        }
    }
}
