//! State files that another master has written: what they have now, as changes.
//!
//! An upgrade that is taken back leaves the old master with the changes that the new one accepted.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use conf::{FileError, Files, Replay};
use session::keyval::journal_path;
use upstream::roster::{GroupChange, ServerOperation};
use zones::Zones;

use super::rosters::Rosters;
use super::worker_change::WorkerChange;
use crate::config_origin::ConfigOrigin;
use crate::load;
use crate::subsystems::Sites;

/// A configuration as it was read, except for its state files.
struct FilesNow {
    recorded: Replay,
    disk: Box<dyn Files>,
    states: BTreeSet<Box<[u8]>>,
}

impl Files for FilesNow {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        match self.states.contains(path) {
            true => self.disk.read(path),
            false => self.recorded.read(path),
        }
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        self.recorded.glob(pattern)
    }
}

/// The changes that give groups and tables what their state files have. `recording`: the files that
/// the configuration was read from. Errors are logged, and change nothing.
pub fn changes_on_disk(
    origin: &ConfigOrigin,
    recording: &[u8],
    sites: &Sites,
    rosters: &Rosters,
) -> Vec<WorkerChange> {
    let states = state_files(sites);
    let Ok(recorded) = Replay::from_bytes(recording) else { return Vec::new() };
    if states.is_empty() {
        return Vec::new();
    }
    let mut files = FilesNow { recorded, disk: origin.files(), states };
    let read = load::load_quietly(&Zones::default(), origin, &mut files);
    read.map_or(Vec::new(), |read| changes(&read.sites, sites, rosters))
}

fn state_files(sites: &Sites) -> BTreeSet<Box<[u8]>> {
    let groups = sites.groups().filter_map(|group| group.rules()?.state.as_deref());
    let tables = sites.keyval_zones().filter_map(|zone| zone.state.as_deref());
    let tables = tables.flat_map(|path| [path.to_owned(), journal_path(path)]);
    let files = groups.map(Path::to_owned).chain(tables);
    files.map(|path| path.as_os_str().as_bytes().into()).collect()
}

/// What is different in sites that were read now.
fn changes(now: &Sites, sites: &Sites, rosters: &Rosters) -> Vec<WorkerChange> {
    let has_state =
        |group: &upstream::Group| group.rules().is_some_and(|rules| rules.state.is_some());
    let groups = sites.groups().filter(|group| has_state(group)).filter_map(|group| {
        let (subsystem, name) = (group.subsystem(), group.name());
        let (had, read) = (rosters.roster(group), now.group(subsystem, name)?.roster());
        let operation = ServerOperation::Replace(read.with_ids_of(&had));
        let change = GroupChange { subsystem, group: name.into(), operation };
        (!read.lists_the_same(&had)).then_some(WorkerChange::Servers(change))
    });
    let zones = sites.keyval_zones().filter(|zone| zone.state.is_some()).filter_map(|zone| {
        let read = now.keyval_zone(zone.subsystem, &zone.name)?;
        Some(WorkerChange::Keyval(read.snapshot(net::clock::monotonic_ms())))
    });
    groups.chain(zones).collect()
}
