//! Groups of servers: balancing, limits, queues, health checks, name resolution, and idle
//! connections, for `http` and `stream`.
//!
//! Choosing is a pure machine: the time is an argument, no socket is used, and events for the log
//! are returned. Deliberately absent: the protocols spoken with servers.

pub mod address;
pub mod api;
mod attempt;
mod balance;
mod condition;
mod counters;
mod discovery;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod group;
pub mod health;
mod lease;
pub mod limit;
mod lines;
mod memory;
mod name;
pub mod named;
mod nodes;
mod peers;
pub mod pool;
mod random;
pub mod resolver;
mod resolver_policy;
pub mod roster;
mod server;
mod server_state;
pub mod settings;
pub mod sticky;
#[cfg(test)]
mod testing;
mod times;
mod waiting;

pub use attempt::Attempt;
pub use balance::Ask;
pub use condition::{GroupServer, ServerCondition};
pub use counters::{GroupCounters, GroupCounts, ServerCounters, ServerCounts};
pub use discovery::Discovery;
pub use group::{Group, ServerChoice};
pub use lease::{Lease, LeaseEvent};
pub use lines::LineResolver;
pub use memory::StateMemory;
pub use nodes::{LiveNodes, NodeCount, NodeLimit};
pub use resolver_policy::ResolverPolicy;
pub use server::{Server, ServerStatus};
pub use settings::{Groups, KeepaliveSettings};
pub use times::Until;
pub use waiting::{GroupLimit, WaitRefused, Waited, WaitingRequest};
