//! The tables as one worker has them.

use std::cell::RefCell;

use super::table::KeyvalTable;
use super::zone::KeyvalZone;
use crate::worker_slots::WorkerSlot;

/// The tables of a configuration's zones as of this worker's last lookup, by the zones' numbers.
#[derive(Default)]
pub struct KeyvalReaders(RefCell<Vec<Option<KeyvalReader>>>);

struct KeyvalReader {
    version: u64,
    table: KeyvalTable,
}

impl<G> WorkerSlot<G> for KeyvalReaders {}

impl KeyvalReaders {
    /// Reads the zone with that number.
    pub(super) fn read<T>(
        &self,
        number: usize,
        zone: &KeyvalZone,
        read: impl FnOnce(&KeyvalTable) -> T,
    ) -> T {
        let mut readers = self.0.borrow_mut();
        if readers.len() <= number {
            readers.resize_with(number + 1, || None);
        }
        // Read before the table is taken: a table may be newer than its version, never older.
        let version = zone.version();
        let reader = &mut readers[number];
        if reader.as_ref().is_none_or(|reader| reader.version != version) {
            *reader = Some(KeyvalReader { version, table: zone.table() });
        }
        read(&reader.as_ref().expect("it is set above").table)
    }
}
