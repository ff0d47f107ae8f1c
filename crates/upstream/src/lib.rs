//! Groups of servers: who is asked next, how many at once, who waits, who is well; and connections
//! kept for later. For `http` and `stream` alike.
//!
//! Choosing is a pure machine: the time is an argument, no socket is touched, and what is worth a
//! line in the log is returned. Deliberately absent: the protocols spoken with servers.

pub mod address;
mod attempt;
mod balance;
mod discovery;
mod group;
pub mod health;
mod lease;
pub mod limit;
mod lines;
mod memory;
mod name;
mod peers;
pub mod pool;
mod random;
pub mod resolver;
mod server;
pub mod settings;
mod standing;
pub mod sticky;
#[cfg(test)]
mod testing;
mod times;
mod waiting;

pub use attempt::Attempt;
pub use balance::Ask;
pub use discovery::Discovery;
pub use group::{Group, ServerChoice};
pub use lease::{Lease, LeaseEvent};
pub use lines::LineResolver;
pub use memory::StateMemory;
pub use server::{Server, ServerStatus};
pub use settings::{Groups, KeepaliveSettings};
pub use waiting::{GroupLimit, WaitRefused, Waited, WaitingRequest};
