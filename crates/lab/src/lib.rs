//! `weir lab`: the cost of settings of a machine and a configuration.
//!
//! [`run`] measures the rows of a study against its baseline; [`tune`] searches for settings that
//! make a configuration faster; [`doctor`] compares the configuration with the machine's limits,
//! without load. [`agent`] does the part of another machine in a study.

pub mod agent;
mod baseline;
mod capacity;
mod distribution;
pub mod doctor;
mod effect;
mod factorial;
mod figures;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod gate;
mod hosts;
mod profile;
mod progress;
mod record;
mod report;
pub mod run;
mod sequential;
mod study;
#[cfg(test)]
mod testing;
pub mod tune;
