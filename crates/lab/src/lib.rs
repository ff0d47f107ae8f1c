//! `weir lab`: what in a machine and a configuration costs how much.
//!
//! [`run`] measures the rows of a study against its baseline; [`doctor`] needs no load and compares
//! the configuration with the machine's limits.

pub mod doctor;
mod effect;
#[doc(hidden)]
pub mod fuzz;
mod record;
mod report;
pub mod run;
mod study;
#[cfg(test)]
mod testing;
