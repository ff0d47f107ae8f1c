//! Active checks of servers: when each is asked, and what the answers make of its health.
//!
//! [`Watch`] is a pure machine: the time is an argument, the answers are brought to it, and each
//! change is returned once. A server's progress is found by group, check and address, so a reload
//! continues it. How a server is asked is the caller's: the watch only carries it along.
//!
//! ```text
//!             fails in a row                first pass
//!   Healthy -----------------> Unhealthy    Checking ------> Healthy
//!           <-----------------                 |
//!             passes in a row                  +-- fails in a row --> Unhealthy
//! ```
//!
//! The invariant: a server is healthy just while each of its checks finds it so.

mod progress;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use progress::{Begin, Change, CheckTerms};
pub use watch::{CheckKey, Due, Watch};

use crate::Group;

/// Connections for checks at one time; what is due beyond them waits.
pub const UNDER_WAY_MAX: usize = 256;
/// How often the servers of groups are looked at, since names may stand for others by now.
pub const LOOK_MS: u64 = 1000;

/// One check of a group's servers. `P` is how they are asked.
#[derive(Clone, Debug)]
pub struct HealthCheck<P> {
    /// The group.
    pub group: Arc<Group>,
    /// When a server is asked, and what counts.
    pub terms: CheckTerms,
    /// How a server is asked.
    pub probe: P,
}
