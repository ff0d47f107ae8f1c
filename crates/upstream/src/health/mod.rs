//! Active checks of servers: when each is checked, and how the results change its health.
//!
//! [`Watch`] is a pure machine: the time is an argument, results are passed to it, and each change
//! is returned once. A server's progress is found by group, check and address, so a reload
//! continues it. The caller sends the checks: the watch only carries their description.
//!
//! ```text
//!             fails in a row                first pass
//!   Healthy -----------------> Unhealthy    Checking ------> Healthy
//!           <-----------------                 |
//!             passes in a row                  +-- fails in a row --> Unhealthy
//! ```
//!
//! The invariant: a server is healthy if and only if each of its checks finds it so.

mod progress;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use progress::{Begin, Change, CheckTerms};
pub use watch::{CheckKey, Due, Watch};

use crate::Group;

/// The most checks at one time; further checks wait.
pub const UNDER_WAY_MAX: usize = 256;
/// How often the servers of groups are read, since names may resolve to other servers.
pub const LOOK_MS: u64 = 1000;

/// One check of a group's servers. `P` describes how they are checked.
#[derive(Clone, Debug)]
pub struct HealthCheck<P> {
    pub group: Arc<Group>,
    /// When a server is checked, and how many results make a change.
    pub terms: CheckTerms,
    pub probe: P,
}
