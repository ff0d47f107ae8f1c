//! Variables of a session, read and set.

use conf::VariableId;
use observe::Level;

use crate::values::TooLong;
use crate::variables::DEPTH_MAX;
use crate::{Configuration as _, Session};

/// Sets a variable. `Err` if there is no room for the value, which has been logged.
pub fn set<X: Session>(x: &mut X, id: VariableId, value: &[u8]) -> Result<(), TooLong> {
    x.values().set(id, Some(value)).inspect_err(|_| {
        let generation = x.generation().clone();
        let name = generation.variable(id).name.escape_ascii();
        let too_long = format_args!("the values of variables are too long to set \"{name}\"");
        x.log(Level::Error, too_long);
    })
}

/// Appends the value of a variable, which is computed unless it is known; false if it has none.
pub fn append<X: Session>(x: &mut X, id: VariableId, out: &mut Vec<u8>) -> bool {
    if let Some(found) = x.values().append_known(id, out) {
        return found;
    }
    let generation = x.generation().clone();
    let variable = generation.variable(id);
    if x.values().depth == DEPTH_MAX {
        let name = variable.name.escape_ascii();
        x.log(Level::Error, format_args!("cycle while evaluating variable \"{name}\""));
        return false;
    }
    let start = out.len();
    x.values().depth += 1;
    let found = (variable.get)(x, out);
    x.values().depth -= 1;
    if variable.cached {
        // Without room, it is computed again next time.
        let _ = x.values().set(id, found.then(|| &out[start..]));
    }
    found
}
