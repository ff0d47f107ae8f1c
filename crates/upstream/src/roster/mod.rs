//! The servers of a group as they are listed: by the configuration, by a state file, by the API.
//!
//! A roster is plain data. The process that decides on changes (the master) applies them to its
//! rosters; every process that serves applies the same [operations](ServerOperation) to its groups.
//! Deliberately absent: addresses that names resolve to, and the state of servers.

mod bytes;
mod change;
mod json;
mod text;

use std::sync::Arc;

use crate::server::ServerTerms;

pub use change::{GroupChange, ServerOperation};

/// The port of a server in `http` that has none.
pub(crate) const DEFAULT_PORT: u16 = 80;
/// The most servers that a roster may list.
pub const ROSTER_LINES_MAX: usize = 4096;

/// A `server` line, or its equal in a request to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    pub(crate) terms: ServerTerms,
    pub(crate) backup: bool,
    /// Whether its name is resolved at run time.
    pub(crate) resolve: bool,
    pub(crate) service: Option<Arc<[u8]>>,
}

/// Who listed a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOwner {
    Configuration,
    StateFile,
    Api,
}

/// One server as it is listed. Its name may resolve to many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterLine {
    /// Never used again for another line of the group.
    pub id: u64,
    pub owner: LineOwner,
    pub spec: ServerSpec,
}

/// The servers of a group, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    pub(crate) next_id: u64,
    pub(crate) lines: Vec<RosterLine>,
}

impl ServerSpec {
    pub(crate) fn plain(text: &[u8]) -> Self {
        Self { terms: ServerTerms::plain(text), backup: false, resolve: false, service: None }
    }

    /// The address as it is written.
    pub fn text(&self) -> &[u8] {
        &self.terms.text
    }

    /// Whether it names the same place in the same way.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.terms.text == other.terms.text
            && (self.backup, self.resolve) == (other.backup, other.resolve)
            && self.service == other.service
    }
}

impl Roster {
    pub fn lines(&self) -> &[RosterLine] {
        &self.lines
    }

    /// The id of the next server to be added.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    pub fn find(&self, id: u64) -> Option<&RosterLine> {
        self.lines.iter().find(|line| line.id == id)
    }

    /// Whether it lists the same servers with the same parameters, whatever their ids.
    pub fn lists_the_same(&self, other: &Self) -> bool {
        self.lines.len() == other.lines.len()
            && self.lines.iter().zip(&other.lines).all(|(one, other)| one.spec == other.spec)
    }

    /// The same servers with the ids that they have in an earlier roster. Others get new ids.
    pub fn with_ids_of(&self, earlier: &Self) -> Self {
        let mut known: Vec<&RosterLine> = earlier.lines.iter().collect();
        let mut next_id = earlier.next_id;
        let lines = self.lines.iter().map(|line| {
            let same = known.iter().position(|known| known.spec.is_same_place(&line.spec));
            let id = same.map(|at| known.remove(at).id).unwrap_or_else(|| {
                next_id += 1;
                next_id - 1
            });
            RosterLine { id, ..line.clone() }
        });
        let lines = lines.collect();
        Self { next_id, lines }
    }
}

/// A server that names resolve to at run time, or that has a further address of a line, has an id
/// whose lower half is the id of the line.
pub(crate) const CHILD_SHIFT: u32 = 32;

/// The id of the line that has a server.
pub fn line_of_server(id: u64) -> u64 {
    id & ((1 << CHILD_SHIFT) - 1)
}
