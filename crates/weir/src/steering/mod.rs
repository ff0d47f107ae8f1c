//! Changes of upstream groups and of tables at run time, in the one process that decides on them:
//! the master, or the only process without a master.
//!
//! ```text
//! call --refused--> reply
//!   `--accepted--> state files written --> rosters, tables, workers, log --> reply
//!                        `--failed--> reply
//! ```
//!
//! While files are written, further calls wait and are then decided together, so that a slow disk
//! costs one write for many changes. Deliberately absent: how workers are told.

mod accepted;
mod decide;
mod errors;
mod files_on_disk;
mod journal;
mod keyvals;
mod listing;
mod lists;
mod purges;
mod resets;
mod rosters;
mod state_file;
mod whole_file;
mod worker_change;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use session::keyval::{KeyvalChange, KeyvalOperation, KeyvalZone};
use session::steering::SteeringCall;
use upstream::Group;

use crate::log::alert;
use crate::subsystems::Sites;
use decide::TrialState;
use journal::WrittenTable;
use keyvals::TrialTables;
use resets::ResetPath;
use state_file::StateOwner;

pub use accepted::{AcceptedChange, AcceptedWhat};
pub use files_on_disk::changes_on_disk;
pub use listing::listing;
pub use purges::apply_purge;
pub use rosters::Rosters;
pub use session::steering::refusal;
pub use state_file::{StateWrite, StoredState};
pub use worker_change::WorkerChange;

/// The most calls that wait.
const CALLS_MAX: usize = 4096;
/// The most calls that are decided together.
const BATCH_MAX: usize = 512;

/// The calls under way.
#[derive(Default)]
pub struct Steering {
    waiting: VecDeque<SteeringCall>,
    /// The changes whose state files are being written.
    storing: Option<Vec<AcceptedChange>>,
    /// Whether the state files of a new configuration are to be compared with its rosters.
    has_new_files: bool,
    /// The state files of tables that this process has written.
    written: BTreeMap<StateOwner, WrittenTable>,
}

impl Steering {
    /// Takes a call. Returns what is to be written before the accepted changes are made, unless it
    /// has to wait.
    pub fn call(
        &mut self,
        call: SteeringCall,
        sites: &Sites,
        rosters: &Rosters,
    ) -> Option<Vec<StateWrite>> {
        if matches!(&*call.request.method, b"GET" | b"HEAD") {
            let reply = decide::answer_reading(&call.request, sites, rosters);
            call.reply.send(reply.unwrap_or_else(|refused| refusal(&refused, &call.request)));
            return None;
        }
        if let (b"DELETE", Some(path)) =
            (&*call.request.method, ResetPath::parse(&call.request.path))
        {
            decide::reset(call, &path, sites);
            return None;
        }
        if self.waiting.len() >= CALLS_MAX {
            call.reply.send(errors::overloaded(&call.request));
            return None;
        }
        self.waiting.push_back(call);
        self.next(sites, rosters)
    }

    /// Decides the calls that wait, unless changes are under way.
    pub fn next(&mut self, sites: &Sites, rosters: &Rosters) -> Option<Vec<StateWrite>> {
        while self.storing.is_none() && (!self.waiting.is_empty() || self.has_new_files) {
            let count = self.waiting.len().min(BATCH_MAX);
            let mut after = TrialState { rosters: rosters.clone(), tables: TrialTables::default() };
            let accepted: Vec<_> = self
                .waiting
                .drain(..count)
                .filter_map(|call| decide::decide(call, sites, &mut after))
                .collect();
            let mut kept = StateFiles::of(&accepted, sites);
            if std::mem::take(&mut self.has_new_files) {
                self.written.clear();
                kept.groups.extend(sites.groups().filter(|group| after.rosters.differs(group)));
                kept.zones.extend(sites.keyval_zones().filter(|zone| zone.may_differ_from_file()));
            }
            if accepted.is_empty() && kept.is_empty() {
                continue;
            }
            let writes = kept.writes(&mut after, &accepted, &self.written);
            self.storing = Some(accepted);
            return Some(writes);
        }
        None
    }

    /// The changes that are to be made, after their state files were written.
    pub fn stored(&mut self, stored: Vec<StoredState>) -> Vec<AcceptedChange> {
        let accepted = self.storing.take().unwrap_or_default();
        let mut made = Vec::new();
        for change in accepted {
            let is_for = |stored: &&StoredState| change.whats.iter().any(|w| stored.is_for(w));
            match stored.iter().find(is_for) {
                Some(StoredState { failed: Some(why), .. }) => {
                    change.to.send(errors::not_stored(why, &change.request));
                }
                _ => made.push(change),
            }
        }
        for StoredState { owner, written, .. } in stored {
            match written {
                Some(written) => _ = self.written.insert(owner, written),
                None => _ = self.written.remove(&owner),
            }
        }
        made
    }

    /// Whether state files are being written.
    pub fn is_storing(&self) -> bool {
        self.storing.is_some()
    }

    /// Leaves the calls that wait without an answer, because another process decides now.
    pub fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Another configuration is in use, whose state files may not have changes that were made
    /// after it was read.
    pub fn new_files(&mut self) {
        self.has_new_files = true;
    }
}

/// Makes changes in a configuration that was read before them and does not serve yet.
pub fn catch_up(changes: &[WorkerChange], sites: &Sites) {
    for change in changes {
        match change {
            WorkerChange::Servers(change) => {
                if let Some(group) = sites.group(change.subsystem, &change.group) {
                    group.change(&change.operation, false);
                }
            }
            WorkerChange::Keyval(change) => apply_to_table(change, sites),
            // A failure has been logged, and nobody waits for an answer.
            WorkerChange::Purge(change) => _ = apply_purge(change, sites),
        }
    }
}

/// Makes a change of a table in a configuration. Nothing happens if that does not have the table.
pub fn apply_to_table(change: &KeyvalChange, sites: &Sites) {
    let KeyvalChange { subsystem, zone, operation } = change;
    let Some(zone) = sites.keyval_zone(*subsystem, zone) else { return };
    // The table of another configuration may be smaller than the one that it was decided on.
    if let Err(refused) = zone.apply(operation, net::clock::monotonic_ms()) {
        alert!("keyval zone \"{}\" lacks a change: {refused}", String::from_utf8_lossy(&zone.name));
    }
}

/// The changes that give a process which has read a configuration the same tables, unless it has
/// them already: those of `known`.
pub fn table_snapshots(sites: &Sites, known: Option<&Sites>) -> Vec<WorkerChange> {
    let is_known = |zone: &&Arc<KeyvalZone>| {
        let before = known.and_then(|known| known.keyval_zone(zone.subsystem, &zone.name));
        before.is_some_and(|before| before.has_table_of(zone))
    };
    let now_ms = net::clock::monotonic_ms();
    let zones = sites.keyval_zones();
    let zones = zones.filter(|zone| zone.differs_from_configuration() && !is_known(zone));
    zones.map(|zone| WorkerChange::Keyval(zone.snapshot(now_ms))).collect()
}

/// Writes state files on another thread.
pub async fn write_all(writes: Vec<StateWrite>) -> Vec<StoredState> {
    if writes.is_empty() {
        return Vec::new();
    }
    net::offload(|| writes.into_iter().map(StateWrite::run).collect()).await
}

/// What has a state file that is to be written.
struct StateFiles<'s> {
    groups: Vec<&'s Arc<Group>>,
    zones: Vec<&'s Arc<KeyvalZone>>,
}

impl<'s> StateFiles<'s> {
    /// What the changes are about.
    fn of(accepted: &[AcceptedChange], sites: &'s Sites) -> Self {
        let mut kept = Self { groups: Vec::new(), zones: Vec::new() };
        for what in accepted.iter().flat_map(|change| &change.whats) {
            match what {
                AcceptedWhat::Workers(WorkerChange::Servers(change)) => {
                    kept.groups.extend(sites.group(change.subsystem, &change.group));
                }
                AcceptedWhat::Workers(WorkerChange::Keyval(change)) => {
                    kept.zones.extend(sites.keyval_zone(change.subsystem, &change.zone));
                }
                AcceptedWhat::Workers(WorkerChange::Purge(_))
                | AcceptedWhat::Owner(_)
                | AcceptedWhat::Version(_) => {}
            }
        }
        kept
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.zones.is_empty()
    }

    /// The state files, each once.
    fn writes(
        self,
        after: &mut TrialState,
        accepted: &[AcceptedChange],
        written: &BTreeMap<StateOwner, WrittenTable>,
    ) -> Vec<StateWrite> {
        let mut writes = BTreeMap::new();
        for group in self.groups {
            if let Some(path) = group.rules().and_then(|rules| rules.state.clone()) {
                writes.entry(StateOwner::of_group(group.subsystem(), group.name())).or_insert_with(
                    || StateWrite::of_group(group, path, &after.rosters.roster(group)),
                );
            }
        }
        for zone in self.zones {
            if let Some(path) = zone.state.clone() {
                let owner = StateOwner::of_zone(zone.subsystem, &zone.name);
                let before = written.get(&owner);
                let changes = changes_of(zone, accepted);
                writes.entry(owner).or_insert_with(|| {
                    StateWrite::of_zone(zone, path, after.tables.table(zone), before, changes)
                });
            }
        }
        writes.into_values().collect()
    }
}

/// The changes of a table, in their order.
fn changes_of<'a>(
    zone: &'a KeyvalZone,
    accepted: &'a [AcceptedChange],
) -> impl Iterator<Item = &'a KeyvalOperation> {
    accepted.iter().flat_map(|change| &change.whats).filter_map(|what| match what {
        AcceptedWhat::Workers(WorkerChange::Keyval(change)) => {
            let is_of_zone = change.subsystem == zone.subsystem && change.zone == zone.name;
            is_of_zone.then_some(&change.operation)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
