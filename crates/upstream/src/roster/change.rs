//! Changes of a roster.

use conf::Subsystem;

use super::{LineOwner, ROSTER_LINES_MAX, Roster, RosterLine, ServerSpec};

/// A change of one group, complete in itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    pub subsystem: Subsystem,
    /// The name of the group, in any case.
    pub group: Box<[u8]>,
    pub operation: ServerOperation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOperation {
    /// Adds a server at the end.
    Add {
        id: u64,
        spec: ServerSpec,
    },
    /// Gives a server these parameters.
    Set {
        id: u64,
        spec: ServerSpec,
    },
    Remove {
        id: u64,
    },
    /// Replaces all servers: for a configuration that was read before the changes.
    Replace(Roster),
}

impl Roster {
    /// Applies an operation. False: it is about a server that is not listed, or that is already,
    /// and nothing changes.
    pub fn apply(&mut self, operation: &ServerOperation) -> bool {
        match operation {
            ServerOperation::Add { id, spec } => self.add(*id, spec),
            ServerOperation::Set { id, spec } => {
                let line = self.lines.iter_mut().find(|line| line.id == *id);
                line.map(|line| line.spec = spec.clone()).is_some()
            }
            ServerOperation::Remove { id } => {
                let before = self.lines.len();
                self.lines.retain(|line| line.id != *id);
                self.lines.len() < before
            }
            ServerOperation::Replace(roster) => {
                *self = Self { next_id: roster.next_id.max(self.next_id), ..roster.clone() };
                true
            }
        }
    }

    fn add(&mut self, id: u64, spec: &ServerSpec) -> bool {
        if self.find(id).is_some() || self.lines.len() >= ROSTER_LINES_MAX {
            return false;
        }
        self.next_id = self.next_id.max(id + 1);
        self.lines.push(RosterLine { id, owner: LineOwner::Api, spec: spec.clone() });
        true
    }
}
