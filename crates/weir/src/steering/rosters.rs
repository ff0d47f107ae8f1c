//! The changes of groups since a configuration was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use conf::Subsystem;
use upstream::Group;
use upstream::roster::{GroupChange, Roster, ServerOperation};

use super::accepted::{AcceptedWhat, OwnerChange};
use super::worker_change::WorkerChange;
use crate::log::notice;
use crate::subsystems::Sites;

/// The groups that are not as the configuration lists them.
#[derive(Clone, Debug, Default)]
pub struct Rosters(BTreeMap<RosterKey, SteeredGroup>);

/// The subsystem, and the name in lower case.
type RosterKey = (Subsystem, Vec<u8>);

#[derive(Clone, Debug, Default)]
struct SteeredGroup {
    /// `None`: as the configuration lists it.
    roster: Option<Arc<Roster>>,
    /// Who has claimed it.
    owner: Option<Box<[u8]>>,
    /// The version of the list that its servers are those of.
    version: Option<Box<[u8]>>,
}

impl Rosters {
    /// The servers of a group as they are listed now.
    pub fn roster(&self, group: &Group) -> Roster {
        let changed = self.0.get(&key(group)).and_then(|steered| steered.roster.as_deref());
        changed.cloned().unwrap_or_else(|| group.roster())
    }

    /// Whether a group lists other servers than its configuration.
    pub fn differs(&self, group: &Group) -> bool {
        let changed = self.0.get(&key(group)).and_then(|steered| steered.roster.as_ref());
        changed.is_some_and(|roster| !roster.lists_the_same(&group.roster()))
    }

    /// Who has claimed a group.
    pub fn owner(&self, group: &Group) -> Option<&[u8]> {
        self.0.get(&key(group))?.owner.as_deref()
    }

    /// The version of the list that a group's servers are those of.
    pub fn version(&self, group: &Group) -> Option<&[u8]> {
        self.0.get(&key(group))?.version.as_deref()
    }

    /// Makes a change in a configuration. Nothing happens if that does not have the group.
    pub fn apply(&mut self, what: &AcceptedWhat, sites: &Sites) {
        match what {
            AcceptedWhat::Workers(WorkerChange::Servers(change)) => {
                self.apply_change(change, sites);
            }
            // The zones themselves have it.
            AcceptedWhat::Workers(WorkerChange::Keyval(_) | WorkerChange::Purge(_)) => {}
            AcceptedWhat::Owner(OwnerChange { subsystem, group, owner }) => {
                if let Some(group) = sites.group(*subsystem, group) {
                    self.0.entry(key(group)).or_default().owner = owner.clone();
                }
            }
            AcceptedWhat::Version(change) => {
                if let Some(group) = sites.group(change.subsystem, &change.group) {
                    self.0.entry(key(group)).or_default().version = change.version.clone();
                }
            }
        }
    }

    fn apply_change(&mut self, change: &GroupChange, sites: &Sites) {
        let Some(group) = sites.group(change.subsystem, &change.group) else { return };
        let mut roster = self.roster(group);
        if roster.apply(&change.operation) {
            let steered = self.0.entry(key(group)).or_default();
            // Other servers are those of no list, unless a version follows.
            (steered.roster, steered.version) = (Some(Arc::new(roster)), None);
        }
    }

    /// The changes that bring a process which has read the configuration up to date.
    pub fn changes(&self) -> Vec<WorkerChange> {
        let changed = self.0.iter().filter_map(|((subsystem, group), steered)| {
            let operation = ServerOperation::Replace(Roster::clone(steered.roster.as_deref()?));
            let (subsystem, group) = (*subsystem, group[..].into());
            Some(WorkerChange::Servers(GroupChange { subsystem, group, operation }))
        });
        changed.collect()
    }

    /// What remains of the changes in the next configuration. A group whose block has the same text
    /// keeps them; one with a state file was read from it. Servers that stay keep their ids.
    pub fn carried_over(&self, old: &Sites, new: &Sites) -> Self {
        let mut next = Self::default();
        for group in new.groups() {
            let Some(before) = old.group(group.subsystem(), group.name()) else { continue };
            let (had, read) = (self.roster(before), group.roster());
            let is_changed = self.0.get(&key(group)).is_some_and(|group| group.roster.is_some());
            let rules = before.rules().zip(group.rules());
            let is_same = rules.is_some_and(|(old, new)| old.text == new.text);
            let has_state = group.rules().is_some_and(|rules| rules.state.is_some());
            let roster = match is_changed && is_same && !has_state {
                true => had.clone(),
                false => read.with_ids_of(&had),
            };
            if is_changed && !has_state && !is_same {
                let name = String::from_utf8_lossy(group.name());
                notice!("upstream \"{name}\" is now as its new text says, without earlier changes");
            }
            let stays = roster.lists_the_same(&had);
            let version = self.version(before).filter(|_| stays).map(Box::from);
            let roster = (roster != read).then(|| Arc::new(roster));
            let owner = self.owner(before).map(Box::from);
            if roster.is_some() || owner.is_some() || version.is_some() {
                next.0.insert(key(group), SteeredGroup { roster, owner, version });
            }
        }
        next
    }
}

fn key(group: &Group) -> RosterKey {
    (group.subsystem(), group.name().to_ascii_lowercase())
}
