//! `set`: sets variables before access is checked.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::evaluate;
use ::session::values::TooLong;
use ::session::variables::{self, Setter, Variable};
use conf::{Directive, Inherited, Load, Result, Template, Value, VariableId};

use crate::session::StreamSession;
use crate::site::{Decision, ServerBuilder};

conf::directives! {
    in SERVER;

    /// Gives a variable a value.
    ///
    /// Syntax: $VARIABLE VALUE
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     set $text "$remote_addr:$remote_port";
    ///     return $text;
    /// }
    /// ```
    set: Vec<SetLine>,
}

#[derive(Clone)]
pub struct SetLine {
    variable: VariableId,
    /// Called instead of storing the value, if the variable has a setter.
    setter: Option<Setter<StreamSession>>,
    value: Template,
}

impl Value for SetLine {
    const ARGS: RangeInclusive<usize> = 2..=2;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let unset = |_: &[u8]| Variable::fresh(|_, _| true);
        let (variable, setter) =
            variables::define_set::<StreamSession>(from.arg(0), from, load, unset)?;
        let value = Template::compile(from.arg(1), from, load)?;
        Ok(Self { variable, setter, value })
    }
}

/// Adds a handler that sets the server's variables.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    if !conf.set.is_empty() {
        let conf = conf.clone();
        place.server.preaccess.push(place.hook(Box::new(move |x| run(&conf.set, x))));
    }
    Ok(())
}

/// nginx's status for an error of its own.
const INTERNAL_SERVER_ERROR: u16 = 500;

fn run(lines: &[SetLine], x: &mut StreamSession) -> Decision {
    let mut value = Vec::new();
    for line in lines {
        value.clear();
        line.value.render(x, &mut value);
        match line.setter {
            Some(set) => set(x, &value),
            None => {
                if let Err(TooLong) = evaluate::set(x, line.variable, &value) {
                    return Decision::Finish(INTERNAL_SERVER_ERROR);
                }
            }
        }
    }
    Decision::Next
}
