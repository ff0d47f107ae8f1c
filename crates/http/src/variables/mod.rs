//! Variables of exchanges, as types of `session::variables`.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;

use crate::exchange::Exchange;

pub(crate) use session::variables::{define_set, maybe, number, resolve, some};

pub type Variable = session::variables::Variable<Exchange>;
pub type BuiltIn = session::variables::BuiltIn<Exchange>;
/// The built-in variables of a module.
pub type VariableTable = session::variables::VariableTable<Exchange>;
/// The tables of built-in variables of exchanges.
pub type BuiltIns = session::variables::BuiltIns<Exchange>;
/// Appends the variable's value; returns false if it has none.
pub type Getter = session::variables::Getter<Exchange>;
/// Called by `set` instead of storing a value.
pub type Setter = session::variables::Setter<Exchange>;
