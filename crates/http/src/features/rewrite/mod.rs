//! Rewrite programs: `set`, `if`, `rewrite`, `return`, `break`.
//!
//! The lines of a block, and of its `if` blocks in their places, are one program, which the rewrite
//! phase runs from the top. An `if` that is true in a location also puts its own settings in force;
//! the last true one stays. Deliberately absent: anything that is not run, such as `add_header` in
//! an `if`. No block inside inherits a program.

mod condition;
mod program;
mod replacement;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use observe::{Level, Text};

use crate::site::Place;
use crate::variables::Variable;
use program::Program;

conf::directives! {
    also {
        /// Replaces the path where it matches a regular expression.
        rewrite(2..=3) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
        /// Stops processing and returns the status to the client.
        return(1..=2) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
        /// Ends the rewrite program.
        break(0..=0) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
        /// Runs the lines inside, and uses the settings inside, where a condition is true.
        if(1..=usize::MAX) {} in SERVER | LOCATION => program;
        /// Gives a variable a value.
        set(2..=2) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
    }
    slots {
        /// The lines.
        program: Option<Program>,
    }

    in MAIN | SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION;

    /// Whether the error log tells, at the level `notice`, what rewrites do.
    rewrite_log: bool = "off",
    /// Whether the error log tells of variables that are read before they are set.
    uninitialized_variable_warn: bool = "on",
}

impl Layer {
    /// Takes the program of an `if` block over from the block's own settings: it runs as a part of
    /// the program that the `if` stands in.
    pub(in crate::features) fn enclose(&mut self, inside: &mut Self) {
        if let Some(Some(program)) = &mut self.program {
            program.enclose(inside.program.take().flatten());
        }
    }
}

/// Hooks the program into the rewrite phase.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.uninitialized_variable_warn = conf.uninitialized_variable_warn;
    if let Some(program) = &conf.program {
        let machine = run::Machine::new(program.clone(), &place.ifs, conf.rewrite_log);
        place.rewrite(move |x| machine.run(x));
    }
    Ok(())
}

/// A variable that a `set` somewhere gives a value, where none has been run yet.
fn uninitialized(name: &[u8]) -> Variable {
    let name: Box<[u8]> = name.into();
    Variable::cached(move |x, _| {
        if x.location().core.uninitialized_variable_warn {
            let name = Text(&name);
            x.log(Level::Warn, format_args!("using uninitialized \"{name}\" variable"));
        }
        true
    })
}
