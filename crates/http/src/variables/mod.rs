//! Variables of exchanges. What a variable is, and how names find theirs, is `session::variables`'.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;

use crate::exchange::Exchange;

pub(crate) use session::variables::{define_set, maybe, number, resolve, some};

/// A variable of exchanges.
pub type Variable = session::variables::Variable<Exchange>;
/// A built-in variable of exchanges.
pub type BuiltIn = session::variables::BuiltIn<Exchange>;
/// The built-in variables of a module.
pub type VariableTable = session::variables::VariableTable<Exchange>;
/// The tables of built-in variables of exchanges.
pub type BuiltIns = session::variables::BuiltIns<Exchange>;
/// Appends the variable's value; false where it has none.
pub type Getter = session::variables::Getter<Exchange>;
/// What `set` does instead of giving the variable a value.
pub type Setter = session::variables::Setter<Exchange>;
