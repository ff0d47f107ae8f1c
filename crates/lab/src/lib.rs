//! `weir lab`: what in a machine and a configuration costs how much.
//!
//! [`doctor`] needs no load: it compares the configuration with the machine's limits.

pub mod doctor;
