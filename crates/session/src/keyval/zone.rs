//! Zones: a table that all workers read and one thread at a time changes.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::Subsystem;
use zones::{TwoProcesses, ZoneState};

use super::change::{KeyvalChange, KeyvalOperation};
use super::key::KeyvalType;
use super::refusal::KeyvalRefusal;
use super::replica::KeyvalReplica;
use super::request::KeyvalRequest;
use super::table::KeyvalTable;

/// A zone of one configuration. The table outlives it.
pub struct KeyvalZone {
    pub subsystem: Subsystem,
    pub name: Box<[u8]>,
    pub kind: KeyvalType,
    /// How long entries stay unless they say otherwise.
    pub timeout_ms: Option<u64>,
    /// The file that keeps the content. The master writes it.
    pub state: Option<Arc<Path>>,
    /// Whether the configuration before had it already, so that its file was only checked.
    is_renewed: bool,
    /// Whether the configuration before named another file.
    pub(super) has_new_file: bool,
    /// With `sync`, what this process knows of the table in the store.
    pub(super) sync: Option<KeyvalSync>,
    shared: Arc<KeyvalShared>,
}

/// A table that is shared through a store.
#[derive(Clone)]
pub(super) struct KeyvalSync {
    /// The address, as the line has it. Another one is another store, of which nothing is known.
    address: Box<[u8]>,
    pub(super) replica: Arc<Mutex<KeyvalReplica>>,
}

struct KeyvalShared {
    /// Grows after each change, so that whoever sees it finds the change in `table`.
    version: AtomicU64,
    /// Held only to copy or to exchange the table.
    table: Mutex<KeyvalTable>,
    /// Held while a change is made. Earlier tables that workers may still have: they are freed by
    /// the next change, because freeing one can take long, and workers must not wait for it.
    replaced: Mutex<Vec<KeyvalTable>>,
}

impl ZoneState for KeyvalZone {
    const DIRECTIVES: &'static [&'static str] = &["keyval_zone"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Shared;
}

impl KeyvalZone {
    pub(super) fn new(subsystem: Subsystem, name: &[u8], table: KeyvalTable) -> Self {
        let kind = table.kind;
        let (version, replaced) = (AtomicU64::new(0), Mutex::default());
        let shared = Arc::new(KeyvalShared { version, table: Mutex::new(table), replaced });
        Self {
            subsystem,
            name: name.into(),
            kind,
            timeout_ms: None,
            state: None,
            is_renewed: false,
            has_new_file: false,
            sync: None,
            shared,
        }
    }

    /// The same zone in the next configuration.
    pub(super) fn renewed(&self) -> Self {
        let (name, shared) = (self.name.clone(), self.shared.clone());
        let Self { subsystem, kind, .. } = *self;
        let (timeout_ms, state, is_renewed) = (None, None, true);
        let (has_new_file, sync) = (false, None);
        Self { subsystem, name, kind, timeout_ms, state, is_renewed, has_new_file, sync, shared }
    }

    /// Shares the table through a store, with what the configuration before knew of it.
    pub(super) fn share(&mut self, address: &[u8], before: Option<&Self>) {
        let before = before.and_then(|before| before.sync.as_ref());
        let known = before.filter(|sync| *sync.address == *address).cloned();
        self.sync = Some(known.unwrap_or_else(|| KeyvalSync {
            address: address.into(),
            replica: Arc::new(Mutex::new(KeyvalReplica::new(net::system::random(), self.kind))),
        }));
    }

    /// The table as it is now.
    pub fn table(&self) -> KeyvalTable {
        lock(&self.shared.table).clone()
    }

    /// Whether another zone, of another configuration, has the same table.
    pub fn has_table_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether a process that reads the configuration would have another content.
    pub fn differs_from_configuration(&self) -> bool {
        self.is_renewed || self.version() > 0
    }

    /// Whether the file, as it was when the configuration was read, may lack some of the content.
    pub fn may_differ_from_file(&self) -> bool {
        self.has_new_file || self.version() > 0
    }

    /// A number that is different after a change.
    pub(super) fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// Decides a request and makes its change, which is returned for other processes.
    pub fn accept(
        &self,
        request: &KeyvalRequest,
        now_ms: u64,
    ) -> Result<KeyvalChange, KeyvalRefusal> {
        let accepted = self.update(|table| table.accept(request, self.timeout_ms, now_ms));
        accepted.map(|operation| self.change(operation))
    }

    /// Makes a change that was decided elsewhere.
    pub fn apply(&self, operation: &KeyvalOperation, now_ms: u64) -> Result<(), KeyvalRefusal> {
        self.update(|table| table.apply(operation, now_ms))
    }

    /// The change that gives another process the same content.
    pub fn snapshot(&self, now_ms: u64) -> KeyvalChange {
        self.change(self.table().to_operation(now_ms))
    }

    fn change(&self, operation: KeyvalOperation) -> KeyvalChange {
        KeyvalChange { subsystem: self.subsystem, zone: self.name.clone(), operation }
    }

    fn update<T>(
        &self,
        change: impl FnOnce(&mut KeyvalTable) -> Result<T, KeyvalRefusal>,
    ) -> Result<T, KeyvalRefusal> {
        let KeyvalShared { version, table, replaced } = &*self.shared;
        let mut replaced = lock(replaced);
        let mut next = self.table();
        let result = change(&mut next)?;
        let before = std::mem::replace(&mut *lock(table), next);
        version.store(version.load(Ordering::Relaxed) + 1, Ordering::Release);
        replaced.retain(KeyvalTable::is_shared);
        if before.is_shared() {
            replaced.push(before);
        }
        Ok(result)
    }
}

/// A panic leaves the data as it was: it changes only after the last step that can fail.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
