//! Writes the files of `state`: whole, or not at all. Changes of a large table are appended to the
//! journal beside its file, until that is as long as the file.

use std::path::Path;
use std::sync::Arc;

use conf::Subsystem;
use observe::{Errno, Level};
use session::keyval::{KeyvalNow, KeyvalOperation, KeyvalTable, KeyvalZone, journal_line};
use upstream::Group;
use upstream::roster::Roster;

use super::accepted::AcceptedWhat;
use super::journal::{JournalWrite, WrittenTable};
use super::whole_file::write_whole;
use super::worker_change::WorkerChange;

/// A file that is to be written.
pub struct StateWrite {
    owner: StateOwner,
    path: Arc<Path>,
    content: StateContent,
}

/// The result of writing a file.
pub struct StoredState {
    pub(super) owner: StateOwner,
    /// Why it was not written.
    pub failed: Option<String>,
    /// What was written, if changes may be appended to it.
    pub(super) written: Option<WrittenTable>,
}

/// What a file keeps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateOwner {
    /// The servers of a group; its name in lower case.
    Group(Subsystem, Vec<u8>),
    /// The table of a zone.
    Zone(Subsystem, Vec<u8>),
}

enum StateContent {
    Text(Vec<u8>),
    /// A table, which is large perhaps: its text is made where it is written.
    Table {
        table: KeyvalTable,
        now: KeyvalNow,
        appended: Option<JournalWrite>,
    },
}

impl StateWrite {
    pub fn of_group(group: &Group, path: Arc<Path>, roster: &Roster) -> Self {
        let owner = StateOwner::of_group(group.subsystem(), group.name());
        Self { owner, path, content: StateContent::Text(roster.to_text()) }
    }

    /// `written`: what this process has written there before. `changes`: those since then.
    pub(super) fn of_zone<'c>(
        zone: &KeyvalZone,
        path: Arc<Path>,
        table: &KeyvalTable,
        written: Option<&WrittenTable>,
        changes: impl Iterator<Item = &'c KeyvalOperation>,
    ) -> Self {
        let owner = StateOwner::of_zone(zone.subsystem, &zone.name);
        let (table, now) = (table.clone(), KeyvalNow::read());
        let appended = written.and_then(|written| {
            let line = journal_line(changes, now)?;
            written.has_room(line.len()).then(|| JournalWrite { written: written.clone(), line })
        });
        Self { owner, path, content: StateContent::Table { table, now, appended } }
    }

    /// Writes it. This may block on the disk.
    pub fn run(self) -> StoredState {
        let Self { owner, path, content } = self;
        let result = match content {
            StateContent::Text(text) => write_whole(&path, &text).map(|()| None),
            StateContent::Table { table, now, appended } => {
                let appended = appended.and_then(|appended| appended.run(&path));
                let whole = || WrittenTable::write(&path, &table.to_state(now));
                appended.unwrap_or_else(whole).map(Some)
            }
        };
        let failed = result.as_ref().err().map(|error| {
            let why =
                format!("state file \"{}\" cannot be written{}", path.display(), Errno(error));
            observe::log(Level::Error, format_args!("{why}"));
            why
        });
        StoredState { owner, failed, written: result.ok().flatten() }
    }
}

impl StateOwner {
    pub(super) fn of_group(subsystem: Subsystem, name: &[u8]) -> Self {
        Self::Group(subsystem, name.to_ascii_lowercase())
    }

    pub(super) fn of_zone(subsystem: Subsystem, name: &[u8]) -> Self {
        Self::Zone(subsystem, name.to_vec())
    }
}

impl StoredState {
    /// Whether the change is kept in this file.
    pub(super) fn is_for(&self, what: &AcceptedWhat) -> bool {
        let AcceptedWhat::Workers(change) = what else { return false };
        self.owner
            == match change {
                WorkerChange::Servers(change) => {
                    StateOwner::of_group(change.subsystem, &change.group)
                }
                WorkerChange::Keyval(change) => StateOwner::of_zone(change.subsystem, &change.zone),
                // The worker processes keep it.
                WorkerChange::Purge(_) => return false,
            }
    }
}
