//! Variables: what their names mean.
//!
//! A name is resolved once, at load, to a getter by number. Getters append to a buffer, so reading
//! a variable into a log line copies it once. Those whose answer must not change within an exchange
//! are kept with it.

mod client;
mod connection;
mod credentials;
mod fields;
mod files;
mod program;
mod reply;
mod request;
mod time;

pub(crate) use time::now;

use std::collections::HashMap;

use conf::{Error, Load, Result, Span};

use crate::decimal;
use crate::exchange::Exchange;
use crate::features::stub_status;

/// Appends the variable's value; false where it has none.
pub type Getter = Box<dyn Fn(&mut Exchange, &mut Vec<u8>) -> bool + Send + Sync>;

/// What `set` does instead of giving the variable a value.
pub type Setter = fn(&mut Exchange, &[u8]);

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

/// The variables that the program has by itself. A feature that has some adds its table here.
const TABLES: &[&[BuiltIn]] = &[
    client::TABLE,
    connection::TABLE,
    request::TABLE,
    fields::TABLE,
    reply::TABLE,
    files::TABLE,
    time::TABLE,
    program::TABLE,
    stub_status::VARIABLES,
];

/// A row of such a table.
pub struct BuiltIn {
    name: &'static str,
    get: Get,
    set: Option<Setter>,
    changeable: bool,
    cached: bool,
}

enum Get {
    Plain(fn(&mut Exchange, &mut Vec<u8>) -> bool),
    /// For all names that begin so: what follows is its argument.
    Prefix(fn(Box<[u8]>) -> Getter),
}

impl BuiltIn {
    /// A variable that is computed at every reading.
    pub const fn fresh(name: &'static str, get: fn(&mut Exchange, &mut Vec<u8>) -> bool) -> Self {
        Self { name, get: Get::Plain(get), set: None, changeable: false, cached: false }
    }

    /// A variable that is computed once in an exchange.
    pub const fn cached(name: &'static str, get: fn(&mut Exchange, &mut Vec<u8>) -> bool) -> Self {
        Self { cached: true, ..Self::fresh(name, get) }
    }

    /// All variables whose names begin with this one.
    pub const fn prefix(name: &'static str, get: fn(Box<[u8]>) -> Getter) -> Self {
        Self { name, get: Get::Prefix(get), set: None, changeable: false, cached: false }
    }

    /// Each of a prefix's variables is computed once in an exchange.
    pub const fn cached_each(self) -> Self {
        Self { cached: true, ..self }
    }

    /// The configuration may define or `set` it as well.
    pub const fn changeable(self) -> Self {
        Self { changeable: true, ..self }
    }

    /// `set` does this.
    pub const fn set_by(self, set: Setter) -> Self {
        Self { set: Some(set), changeable: true, ..self }
    }

    fn variable(&self, name: &[u8]) -> Variable {
        let get: Getter = match self.get {
            Get::Plain(get) => Box::new(get),
            Get::Prefix(get) => get(name[self.name.len()..].into()),
        };
        Variable { get, cached: self.cached }
    }
}

fn plain(name: &[u8]) -> Option<&'static BuiltIn> {
    let mut rows = TABLES.iter().copied().flatten();
    rows.find(|row| matches!(row.get, Get::Plain(_)) && row.name.as_bytes() == name)
}

/// The longest prefix that the name begins with.
fn prefix(name: &[u8]) -> Option<&'static BuiltIn> {
    let rows = TABLES.iter().copied().flatten();
    rows.filter(|row| matches!(row.get, Get::Prefix(_)) && name.starts_with(row.name.as_bytes()))
        .max_by_key(|row| row.name.len())
}

/// Gives every name that the configuration mentions its getter.
pub(crate) fn resolve(load: &mut Load<'_>) -> Result<Vec<Variable>> {
    let mentions: Vec<(Box<[u8]>, Option<Span>)> =
        load.names.mentions().map(|(name, at)| (name.into(), at)).collect();
    let defined = load.registry.of::<Defined>();
    mentions.into_iter().map(|(name, at)| variable(&name, at, defined)).collect()
}

fn variable(name: &[u8], at: Option<Span>, defined: &mut Defined) -> Result<Variable> {
    let found = (defined.0.remove(name))
        .or_else(|| plain(name).map(|row| row.variable(name)))
        .or_else(|| prefix(name).map(|row| row.variable(name)));
    found.ok_or_else(|| {
        let message = format!("unknown \"{}\" variable", String::from_utf8_lossy(name));
        match at {
            Some(span) => Error::at(span, message),
            None => Error::bare(message),
        }
    })
}

/// A value that is there.
fn some(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

/// A value that may not be there.
fn maybe(out: &mut Vec<u8>, value: Option<&[u8]>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

/// A number.
pub(crate) fn number(out: &mut Vec<u8>, value: u64) -> bool {
    decimal::write(value, out);
    true
}
