//! Writes the files of `state`: whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::Subsystem;
use observe::{Errno, Level};
use session::keyval::{KeyvalNow, KeyvalTable, KeyvalZone};
use upstream::Group;
use upstream::roster::Roster;

use super::accepted::AcceptedWhat;
use super::worker_change::WorkerChange;

/// A file that is to be written.
pub struct StateWrite {
    owner: StateOwner,
    path: Arc<Path>,
    content: StateContent,
}

/// The result of writing a file.
pub struct StoredState {
    owner: StateOwner,
    /// Why it was not written.
    pub failed: Option<String>,
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
    Table(KeyvalTable, KeyvalNow),
}

impl StateWrite {
    pub fn of_group(group: &Group, path: Arc<Path>, roster: &Roster) -> Self {
        let owner = StateOwner::of_group(group.subsystem(), group.name());
        Self { owner, path, content: StateContent::Text(roster.to_text()) }
    }

    pub fn of_zone(zone: &KeyvalZone, path: Arc<Path>, table: &KeyvalTable) -> Self {
        let owner = StateOwner::of_zone(zone.subsystem, &zone.name);
        Self { owner, path, content: StateContent::Table(table.clone(), KeyvalNow::read()) }
    }

    /// Writes it. This may block on the disk.
    pub fn run(self) -> StoredState {
        let Self { owner, path, content } = self;
        let text = match content {
            StateContent::Text(text) => text,
            StateContent::Table(table, now) => table.to_state(now),
        };
        let failed = write_whole(&path, &text).err().map(|error| {
            let why =
                format!("state file \"{}\" cannot be written{}", path.display(), Errno(&error));
            observe::log(Level::Error, format_args!("{why}"));
            why
        });
        StoredState { owner, failed }
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

/// Replaces a file. After a crash at any moment it has either the old text or the new.
fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    // A link stays, and the file that it names is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = beside(&target);
    let written = write_new(&new, &target, text);
    if written.is_err() {
        // If this fails as well, the next write replaces it.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(new: &Path, target: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(new)?;
    file.write_all(text)?;
    if let Ok(before) = fs::metadata(target) {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    fs::rename(new, target)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The name of the file while it is written.
fn beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use testing::Folder;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_link_stays() {
        let folder = Folder::new();
        let (file, link) = (folder.join("a.conf"), folder.join("link"));
        write_whole(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&*folder).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_as_it_was() {
        let folder = Folder::new();
        let target = folder.join("target");
        fs::create_dir(&target).unwrap();
        assert!(write_whole(&target, b"x").is_err());
        assert_eq!(fs::read_dir(&*folder).unwrap().count(), 1);
    }
}
