//! Variables: what their names mean.
//!
//! A name is resolved once, at load, to a getter by number. Getters append to a buffer, so reading
//! a variable into a log line copies it once. Those whose answer must not change within an exchange
//! are kept with it.

mod core;

use std::collections::HashMap;

use conf::{Error, Load, Result, Span};

use crate::exchange::Exchange;

/// Appends the variable's value; false where it has none.
pub type Getter = Box<dyn Fn(&mut Exchange, &mut Vec<u8>) -> bool + Send + Sync>;

/// A variable.
pub struct Variable {
    /// How to get it.
    pub get: Getter,
    /// Whether the first answer holds for the whole exchange.
    pub cached: bool,
}

/// Variables that the configuration defines: `map`, `set`, named captures.
#[derive(Default)]
pub struct Defined(pub(crate) HashMap<Box<[u8]>, Variable>);

impl Variable {
    /// A variable that is computed at every reading.
    pub fn fresh(
        get: impl Fn(&mut Exchange, &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { get: Box::new(get), cached: false }
    }

    /// A variable that is computed once in an exchange.
    pub fn cached(
        get: impl Fn(&mut Exchange, &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { get: Box::new(get), cached: true }
    }
}

/// Gives every name that the configuration mentions its getter.
pub(crate) fn resolve(load: &mut Load<'_>) -> Result<Vec<Variable>> {
    let mentions: Vec<(Box<[u8]>, Option<Span>)> =
        load.names.mentions().map(|(name, at)| (name.into(), at)).collect();
    let defined = load.registry.of::<Defined>();
    mentions.into_iter().map(|(name, at)| variable(&name, at, defined)).collect()
}

fn variable(name: &[u8], at: Option<Span>, defined: &mut Defined) -> Result<Variable> {
    let found = defined.0.remove(name).or_else(|| core::variable(name));
    found.ok_or_else(|| {
        let message = format!("unknown \"{}\" variable", String::from_utf8_lossy(name));
        match at {
            Some(span) => Error::at(span, message),
            None => Error::bare(message),
        }
    })
}
