//! `weir lab`: what in a machine and a configuration costs how much.
//!
//! [`run`] measures the rows of a study against its baseline; [`tune`] searches for settings that
//! make a configuration faster; [`doctor`] needs no load and compares the configuration with the
//! machine's limits.

pub mod doctor;
mod effect;
mod factorial;
mod figures;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod hosts;
mod progress;
mod record;
mod report;
pub mod run;
mod study;
#[cfg(test)]
mod testing;
pub mod tune;
