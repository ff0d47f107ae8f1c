//! Changes of upstream groups at run time, in the one process that decides on them: the master, or
//! the only process without a master.
//!
//! ```text
//! call --refused--> reply
//!   `--accepted--> state files written --> rosters, workers, log --> reply
//!                        `--failed--> reply
//! ```
//!
//! While files are written, further calls wait and are then decided together, so that a slow disk
//! costs one write for many changes. Deliberately absent: how workers are told.

mod accepted;
mod decide;
mod errors;
mod listing;
mod rosters;
mod state_file;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use session::steering::SteeringCall;
use upstream::Group;
use upstream::roster::GroupChange;

use crate::subsystems::Sites;

pub use accepted::{AcceptedChange, AcceptedWhat};
pub use errors::refusal;
pub use listing::listing;
pub use rosters::Rosters;
pub use state_file::{StateWrite, StoredState};

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
            let mut after = rosters.clone();
            let accepted: Vec<_> = self
                .waiting
                .drain(..count)
                .filter_map(|call| decide::decide(call, sites, &mut after))
                .collect();
            let mut groups = changed_groups(&accepted, sites);
            if std::mem::take(&mut self.has_new_files) {
                groups.extend(sites.groups().filter(|group| after.differs(group)));
            }
            if accepted.is_empty() && groups.is_empty() {
                continue;
            }
            self.storing = Some(accepted);
            return Some(state_writes(&groups, &after));
        }
        None
    }

    /// The changes that are to be made, after their state files were written.
    pub fn stored(&mut self, stored: &[StoredState]) -> Vec<AcceptedChange> {
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
        made
    }

    /// Another configuration is in use, whose state files may not have changes that were made
    /// after it was read.
    pub fn new_files(&mut self) {
        self.has_new_files = true;
    }
}

/// Makes changes in a configuration that was read before them and does not serve yet.
pub fn catch_up(changes: &[GroupChange], sites: &Sites) {
    for change in changes {
        if let Some(group) = sites.group(change.subsystem, &change.group) {
            group.change(&change.operation, false);
        }
    }
}

/// Writes state files on another thread.
pub async fn write_all(writes: Vec<StateWrite>) -> Vec<StoredState> {
    if writes.is_empty() {
        return Vec::new();
    }
    net::offload(|| writes.into_iter().map(StateWrite::run).collect()).await
}

/// The groups whose servers change.
fn changed_groups<'s>(accepted: &[AcceptedChange], sites: &'s Sites) -> Vec<&'s Arc<Group>> {
    let servers = accepted.iter().flat_map(|change| &change.whats).filter_map(|what| match what {
        AcceptedWhat::Servers(change) => sites.group(change.subsystem, &change.group),
        AcceptedWhat::Owner(_) => None,
    });
    servers.collect()
}

/// The state files of groups, each once.
fn state_writes(groups: &[&Arc<Group>], after: &Rosters) -> Vec<StateWrite> {
    let mut writes = BTreeMap::new();
    for group in groups {
        if let Some(path) = group.rules().and_then(|rules| rules.state.clone()) {
            writes
                .entry((group.subsystem(), group.name()))
                .or_insert_with(|| StateWrite::new(group, path, &after.roster(group)));
        }
    }
    writes.into_values().collect()
}

#[cfg(test)]
mod tests;
