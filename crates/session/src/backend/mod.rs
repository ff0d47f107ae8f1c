//! Access to the servers of a group for `http` and `stream`: the choice of group and server, the
//! queue, the origin of connections, and the record of the servers that were tried.
//!
//! Deliberately absent: the bytes sent to a server, and the conditions for trying another one.

mod attempts;
mod bind;
mod choice;
mod connect;
mod queue;
mod target;
mod variables;

use std::sync::Arc;

use upstream::Group;

use crate::Session;

pub use attempts::{Attempts, UpstreamAttempt};
pub use bind::{Bind, LocalAddress, local_address};
pub use choice::{NoServer, choose};
pub use connect::{CONNECTING, ConnectTrouble, log_failed, log_refused};
pub use target::{NoGroup, find_group, resolve};
pub use variables::{BackendVariables, write_each, write_times};

/// A session that is passed on to servers.
pub trait Backed: Session {
    /// The servers that were tried.
    fn attempts(&self) -> &Attempts;
    /// The group that it was passed on to last, if that has a limit.
    fn limited(&self) -> Option<&Arc<Group>>;
    /// The current action, as log lines name it after `while`.
    fn action(&mut self) -> &mut &'static str;
}
