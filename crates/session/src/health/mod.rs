//! Active health checks: one thread per process checks the servers, independent of the number of
//! workers.
//!
//! `upstream::health` decides which server is due and how a result changes its state; the subsystem
//! decides how one server is checked ([`HealthProbe`]). This module has the loop between them, and
//! the log lines. The states of servers outlive configurations, since [`HealthChecks`] does.

mod checks;
mod lines;
mod parameters;
mod probe;

pub use checks::HealthChecks;
pub use parameters::{CheckParameters, is_named};
pub use probe::{CheckFailure, HealthProbe, Verdict, probe_address};
