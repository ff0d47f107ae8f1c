//! The values of an exchange's variables: looked up, or computed by what their names stand for.

use conf::{Values, VariableId};
use observe::Level;

use super::{Exchange, TooLong};
use crate::variables;

impl Exchange {
    /// Gives a variable its value. `Err`: there is no room for it, which has been logged.
    pub fn set_value(&mut self, id: VariableId, value: &[u8]) -> Result<(), TooLong> {
        self.values.set(id, Some(value)).inspect_err(|_| {
            let generation = self.generation.clone();
            let name = generation.variable(id).name.escape_ascii();
            let too_long = format_args!("the values of variables are too long to set \"{name}\"");
            self.log(Level::Error, too_long);
        })
    }
}

impl Values for Exchange {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        if let Some(found) = self.values.append_known(id, out) {
            return found;
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
            // Where there is no room for it, it is computed again.
            let _ = self.values.set(id, found.then(|| &out[start..]));
        }
        found
    }

    fn capture(&mut self, group: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(self.captures.group(group.into()).unwrap_or_default());
    }
}
