//! Values that variables have in one exchange: set by the configuration, or computed once.

use conf::{Values, VariableId};
use observe::Level;

use super::Exchange;
use crate::variables;

/// Variables with a value of their own, their bytes in one arena.
#[derive(Default)]
pub struct SetValues {
    slots: Vec<Slot>,
    arena: Vec<u8>,
    /// How many variables are being computed, each for the one before it.
    depth: u8,
}

#[derive(Clone, Copy, Default)]
enum Slot {
    #[default]
    Unset,
    Absent,
    Value(u32, u32),
}

impl SetValues {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.arena.clear();
        self.depth = 0;
    }

    /// Gives back the memory that it does not use.
    pub(crate) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.arena.shrink_to_fit();
    }

    /// Forgets one, so that it is computed anew.
    pub fn forget(&mut self, id: VariableId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            *slot = Slot::Unset;
        }
    }

    /// Gives a variable its value; `None`: it has none, and need not be asked again.
    pub fn set(&mut self, id: VariableId, value: Option<&[u8]>) {
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::Unset);
        }
        self.slots[index] = match value {
            None => Slot::Absent,
            Some(bytes) => {
                let start = self.arena.len() as u32;
                self.arena.extend_from_slice(bytes);
                Slot::Value(start, self.arena.len() as u32)
            }
        };
    }

    /// `None`: not known yet. `Some(None)`: known to have no value.
    pub fn known(&self, id: VariableId) -> Option<Option<&[u8]>> {
        match self.slots.get(id.0 as usize).copied().unwrap_or_default() {
            Slot::Unset => None,
            Slot::Absent => Some(None),
            Slot::Value(start, end) => Some(self.arena.get(start as usize..end as usize)),
        }
    }
}

impl Values for Exchange {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        if let Some(known) = self.values.known(id) {
            out.extend_from_slice(known.unwrap_or_default());
            return known.is_some();
        }
        let generation = self.generation.clone();
        let variable = generation.variable(id);
        if self.values.depth == variables::DEPTH_MAX {
            let name = variable.name.escape_ascii();
            self.log(Level::Error, format_args!("cycle while evaluating variable \"{name}\""));
            return false;
        }
        let start = out.len();
        self.values.depth += 1;
        let found = (variable.get)(self, out);
        self.values.depth -= 1;
        if variable.cached {
            self.values.set(id, found.then(|| &out[start..]));
        }
        found
    }

    fn capture(&mut self, group: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(self.captures.group(group.into()).unwrap_or_default());
    }
}
