//! Zones: a table that all workers read and one thread at a time changes.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::Subsystem;
use zones::{TwoProcesses, ZoneState, Zones};

use super::change::{KeyvalChange, KeyvalOperation};
use super::key::KeyvalType;
use super::refusal::KeyvalRefusal;
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
    shared: Arc<KeyvalShared>,
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
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl KeyvalZone {
    pub(super) fn new(subsystem: Subsystem, name: &[u8], table: KeyvalTable) -> Self {
        let kind = table.kind;
        let (version, replaced) = (AtomicU64::new(0), Mutex::default());
        let shared = Arc::new(KeyvalShared { version, table: Mutex::new(table), replaced });
        Self { subsystem, name: name.into(), kind, timeout_ms: None, state: None, shared }
    }

    /// The same zone in the next configuration.
    pub(super) fn renewed(&self) -> Self {
        let (name, shared) = (self.name.clone(), self.shared.clone());
        let Self { subsystem, kind, .. } = *self;
        Self { subsystem, name, kind, timeout_ms: None, state: None, shared }
    }

    /// The table as it is now.
    pub fn table(&self) -> KeyvalTable {
        lock(&self.shared.table).clone()
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

/// All zones of a configuration, in the order of subsystems and names.
#[derive(Clone, Default)]
pub struct KeyvalZones(Vec<Arc<KeyvalZone>>);

impl KeyvalZones {
    pub fn of(zones: &Zones) -> Self {
        Self(zones.all())
    }

    /// The zones of a subsystem.
    pub fn within(&self, subsystem: Subsystem) -> impl Iterator<Item = &Arc<KeyvalZone>> {
        self.0.iter().filter(move |zone| zone.subsystem == subsystem)
    }

    pub fn find(
        &self,
        subsystem: Subsystem,
        name: &[u8],
    ) -> Result<&Arc<KeyvalZone>, KeyvalRefusal> {
        let found = self.within(subsystem).find(|zone| *zone.name == *name);
        found.ok_or_else(|| KeyvalRefusal::no_zone(name))
    }

    /// Makes a change that was decided elsewhere: the one way in which a zone changes there.
    pub fn apply(&self, change: &KeyvalChange, now_ms: u64) -> Result<(), KeyvalRefusal> {
        let KeyvalChange { subsystem, zone, operation } = change;
        self.find(*subsystem, zone)?.apply(operation, now_ms)
    }

    /// The changes that give a process which has read the configuration the same content.
    pub fn snapshots(&self, now_ms: u64) -> Vec<KeyvalChange> {
        self.0.iter().map(|zone| zone.snapshot(now_ms)).collect()
    }
}
