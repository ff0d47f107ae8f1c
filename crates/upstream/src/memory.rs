//! The standing of every server by group and address, and the lines of waiting requests by name, so
//! that a reload forgets nothing; and the table through which other processes share their limits.
//!
//! It holds what some group still uses: the new generation is built before the old one goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use net::Address;

use crate::limit::{SharedTable, WaitQueue};
use crate::name::GroupName;
use crate::pool::Handoff;
use crate::resolver::{ResolvedPeer, WatchedName};
use crate::standing::ServerState;

/// Where standings are found again.
#[derive(Debug, Default)]
pub struct StateMemory {
    known: Mutex<HashMap<MemoryKey, Weak<ServerState>>>,
    found: Mutex<HashMap<MemoryName, Weak<Mutex<Vec<ResolvedPeer>>>>>,
    lines: Mutex<QueuesByName>,
    table: OnceLock<Arc<SharedTable>>,
}

/// What was found last for a name.
pub(crate) type LastResolved = Arc<Mutex<Vec<ResolvedPeer>>>;

type QueuesByName = HashMap<Box<[u8]>, Weak<WaitQueue<Handoff>>>;

/// The group, and what is looked up for it.
type MemoryName = (GroupName, WatchedName);

/// The group, the address, and how many of the group's servers before it have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MemoryKey {
    group: GroupName,
    address: Address,
    twin: u32,
}

impl StateMemory {
    /// The process's.
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<StateMemory> = OnceLock::new();
        PROCESS.get_or_init(Self::default)
    }

    /// The standing of a server, new where nobody uses it.
    pub(crate) fn standing(
        &self,
        group: &GroupName,
        address: &Address,
        twin: u32,
    ) -> Arc<ServerState> {
        let key = MemoryKey { group: group.clone(), address: address.clone(), twin };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(standing) = known.get(&key).and_then(Weak::upgrade) {
            return standing;
        }
        if known.len() == known.capacity() {
            known.retain(|_, standing| standing.strong_count() > 0);
        }
        let standing = Arc::default();
        known.insert(key, Arc::downgrade(&standing));
        standing
    }

    /// What was found last for a name of a group, whatever port was asked for.
    pub(crate) fn found(&self, group: &GroupName, watched: &WatchedName) -> LastResolved {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (group.clone(), WatchedName { port: 0, ..watched.clone() });
        if let Some(known) = found.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        found.retain(|_, known| known.strong_count() > 0);
        let known = LastResolved::default();
        found.insert(key, Arc::downgrade(&known));
        known
    }

    /// The line of that name, new where nothing counts in it. Where other processes share it there
    /// is only one, whichever configurations know it.
    pub(crate) fn line(&self, name: &[u8]) -> Arc<WaitQueue<Handoff>> {
        let Some(table) = self.table.get() else { return WaitQueue::new() };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lines.get(name).and_then(Weak::upgrade) {
            return known;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = WaitQueue::shared(name, table);
        lines.insert(name.into(), Arc::downgrade(&line));
        line
    }

    /// New lines share their limits with other processes through this table.
    pub fn share(&self, table: Arc<SharedTable>) {
        // Once for the process.
        let _ = self.table.set(table);
    }

    /// The table, if there is one.
    pub fn table(&self) -> Option<&Arc<SharedTable>> {
        self.table.get()
    }

    /// Gives slots that other processes have freed to requests that wait. Answers whether a request
    /// still waits.
    pub fn settle_lines(&self) -> bool {
        let lines: Vec<_> = {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.values().filter_map(Weak::upgrade).collect()
        };
        lines.iter().fold(false, |waits, line| line.settle_all() | waits)
    }
}

#[cfg(all(not(weir_loom), test))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_line_that_is_shared_is_one_as_long_as_it_is_used() {
        let file = SharedTable::create().unwrap();
        let memory = StateMemory::default();
        let alone = memory.line(b"name");
        assert!(!Arc::ptr_eq(&alone, &memory.line(b"name")));
        memory.share(SharedTable::join(file.as_fd(), || 0).unwrap());
        let line = memory.line(b"name");
        let slots = line.slots(b"server", 1);
        drop(line);
        // No configuration names it now, but a request is in progress.
        let slot = slots.try_take();
        let again = memory.line(b"name").slots(b"server", 1);
        assert!(Arc::ptr_eq(&slots, &again) && again.try_take().is_none());
        drop((slot, slots, again));
        assert!(memory.line(b"name").slots(b"server", 1).try_take().is_some());
    }
}
