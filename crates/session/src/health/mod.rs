//! Active health checks: one thread of the process asks the servers, however many workers serve.
//!
//! Which server is due and how answers change its state is `upstream::health`'s; how one server is
//! asked is the subsystem's ([`HealthProbe`]). Here is the loop between them, and the log lines.
//! What is known of servers outlives configurations, since [`HealthChecks`] does.

mod checks;
mod lines;
mod parameters;
mod probe;

pub use checks::HealthChecks;
pub use parameters::{CheckParameters, is_named};
pub use probe::{CheckFailure, HealthProbe, Verdict, probe_address};
