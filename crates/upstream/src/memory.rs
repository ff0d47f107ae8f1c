//! The state of every server by group and address, and the queues of waiting requests by name,
//! which outlive configurations; and the table through which processes share limits.
//!
//! Entries live as long as a group uses them: a new generation is built before the old one is
//! dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use net::Address;

use crate::limit::{SharedTable, WaitQueue};
use crate::name::GroupName;
use crate::pool::Handoff;
use crate::resolver::{ResolvedPeer, WatchedName};
use crate::server_state::ServerState;

/// State that reloads find again.
#[derive(Debug, Default)]
pub struct StateMemory {
    known: Mutex<HashMap<MemoryKey, Weak<ServerState>>>,
    found: Mutex<HashMap<MemoryName, Weak<Mutex<Vec<ResolvedPeer>>>>>,
    queues: Mutex<QueuesByName>,
    table: OnceLock<Arc<SharedTable>>,
}

/// The last result of resolving a name.
pub(crate) type LastResolved = Arc<Mutex<Vec<ResolvedPeer>>>;

type QueuesByName = HashMap<Box<[u8]>, Weak<WaitQueue<Handoff>>>;

/// The group, and the name that is resolved for it.
type MemoryName = (GroupName, WatchedName);

/// The group, the address, and the number of the group's earlier servers with that address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MemoryKey {
    group: GroupName,
    address: Address,
    twin: u32,
}

/// The name under which a server counts.
fn metric_name(key: &MemoryKey) -> Box<[u8]> {
    let MemoryKey { group, address, twin } = key;
    let (group, address) = (group.metric_name(), address.to_string());
    [&group[..], address.as_bytes(), &twin.to_be_bytes()].join(&0).into()
}

impl StateMemory {
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<StateMemory> = OnceLock::new();
        PROCESS.get_or_init(Self::default)
    }

    /// The state of a server; a new one if no group uses it yet.
    pub(crate) fn server_state(
        &self,
        group: &GroupName,
        address: &Address,
        twin: u32,
    ) -> Arc<ServerState> {
        let key = MemoryKey { group: group.clone(), address: address.clone(), twin };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = known.get(&key).and_then(Weak::upgrade) {
            return state;
        }
        if known.len() == known.capacity() {
            known.retain(|_, state| state.strong_count() > 0);
        }
        let state = Arc::new(ServerState::named(metric_name(&key)));
        known.insert(key, Arc::downgrade(&state));
        state
    }

    /// The last result for a name of a group, for any port.
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

    /// The queue of that name. If it is shared with other processes, this process has only one,
    /// whichever configurations name it; otherwise every call makes a new one.
    pub(crate) fn queue(&self, name: &[u8]) -> Arc<WaitQueue<Handoff>> {
        let Some(table) = self.table.get() else { return WaitQueue::new() };
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = queues.get(name).and_then(Weak::upgrade) {
            return known;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = WaitQueue::shared(name, table);
        queues.insert(name.into(), Arc::downgrade(&queue));
        queue
    }

    /// Makes new queues share their limits with other processes through this table.
    pub fn share(&self, table: Arc<SharedTable>) {
        // Only the first table counts.
        let _ = self.table.set(table);
    }

    /// The table, if there is one.
    pub fn table(&self) -> Option<&Arc<SharedTable>> {
        self.table.get()
    }

    /// Gives slots that other processes have freed to requests that wait. Returns whether a request
    /// still waits.
    pub fn settle_queues(&self) -> bool {
        let queues: Vec<_> = {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.values().filter_map(Weak::upgrade).collect()
        };
        queues.iter().fold(false, |waits, queue| queue.settle_all() | waits)
    }
}

#[cfg(all(not(weir_loom), test))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_shared_queue_is_one_as_long_as_it_is_used() {
        let file = SharedTable::create().unwrap();
        let memory = StateMemory::default();
        let alone = memory.queue(b"name");
        assert!(!Arc::ptr_eq(&alone, &memory.queue(b"name")));
        memory.share(SharedTable::join(file.as_fd(), || 0).unwrap());
        let queue = memory.queue(b"name");
        let slots = queue.slots(b"server", 1);
        drop(queue);
        // No configuration names it now, but a request is in progress.
        let slot = slots.try_take();
        let again = memory.queue(b"name").slots(b"server", 1);
        assert!(Arc::ptr_eq(&slots, &again) && again.try_take().is_none());
        drop((slot, slots, again));
        assert!(memory.queue(b"name").slots(b"server", 1).try_take().is_some());
    }
}
