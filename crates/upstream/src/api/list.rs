//! A list of all servers that a group is to have, and what it changes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use conf::Subsystem;

use super::patch::SpecPatch;
use super::rules::{GroupRules, ListedPlace, SpecRefusal};
use crate::roster::{LineOwner, ROSTER_LINES_MAX, Roster, RosterLine};

/// How many servers of a group a list adds, changes, removes and leaves as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RosterDifference {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
    pub unchanged: usize,
}

impl GroupRules {
    /// The roster that a list of all servers asks for. A server that stays keeps its id, and the
    /// others are those of the list in its order. One wrong entry refuses the whole list.
    pub fn listed(
        &self,
        body: &[u8],
        subsystem: Subsystem,
        roster: &Roster,
    ) -> Result<(Roster, RosterDifference), SpecRefusal> {
        let wanted = SpecPatch::list_from_json(body, subsystem)?;
        if wanted.len() > ROSTER_LINES_MAX {
            let text = format!("the list has more than {ROSTER_LINES_MAX} servers");
            return Err(SpecRefusal::bad(text, "UpstreamOutOfMemory"));
        }
        let mut list = NewRoster::over(roster);
        for (at, wanted) in wanted.iter().enumerate() {
            let taken = self.new_spec(wanted).and_then(|spec| {
                let line = RosterLine { id: list.next_id, owner: LineOwner::Api, spec };
                list.take(at, line)
            });
            taken.map_err(|refused| refused.in_entry(at))?;
        }
        Ok(list.end(roster))
    }
}

/// The servers of a list so far.
struct NewRoster<'r> {
    /// The first line of each server in the roster.
    had: HashMap<ListedPlace, &'r RosterLine>,
    /// The entries by their servers.
    seen: HashMap<ListedPlace, usize>,
    next_id: u64,
    lines: Vec<RosterLine>,
    difference: RosterDifference,
}

impl<'r> NewRoster<'r> {
    fn over(roster: &'r Roster) -> Self {
        // A configuration may list a server twice; the first line stays.
        let lines = roster.lines.iter().rev();
        Self {
            had: lines.map(|line| (ListedPlace::of(&line.spec), line)).collect(),
            seen: HashMap::new(),
            next_id: roster.next_id,
            lines: Vec::new(),
            difference: RosterDifference::default(),
        }
    }

    fn take(&mut self, at: usize, mut line: RosterLine) -> Result<(), SpecRefusal> {
        let key = ListedPlace::of(&line.spec);
        match self.had.get(&key) {
            None => {
                self.next_id += 1;
                self.difference.added += 1;
            }
            Some(had) => {
                // Another spelling of the same address changes nothing.
                line.spec.terms.text = had.spec.terms.text.clone();
                line.id = had.id;
                if had.spec == line.spec {
                    line.owner = had.owner;
                    self.difference.unchanged += 1;
                } else {
                    self.difference.changed += 1;
                }
            }
        }
        match self.seen.entry(key) {
            Entry::Occupied(first) => {
                let text = format!("the server is that of entry {}", first.get() + 1);
                return Err(SpecRefusal::bad(text, "EntryExists"));
            }
            Entry::Vacant(vacant) => _ = vacant.insert(at),
        }
        self.lines.push(line);
        Ok(())
    }

    fn end(self, roster: &Roster) -> (Roster, RosterDifference) {
        let Self { next_id, lines, mut difference, .. } = self;
        difference.removed = roster.lines.len() - difference.changed - difference.unchanged;
        (Roster { next_id, lines }, difference)
    }
}
