//! A store that several machines share (Valkey, Redis), and the exchange with it.
//!
//! ```text
//! every interval: members --commands--> one pipeline --replies--> members
//!     fails: members are told that the store is gone; connecting again, with growing pauses
//! ```
//!
//! One task of the control thread for each store exchanges what its members want ([`StoreMember`]):
//! sums of requests, and tables. No request ever waits for the store: members leave to the workers
//! what they know. The heartbeat of the exchange counts the nodes, so that each can enforce its
//! share: always of a limit of `N/nodes` ([`nodes`]), and of all while the store is gone.
//!
//! Deliberately absent: the meaning of what is exchanged, and any state in the store that could not
//! be lost.

mod address;
mod exchange;
mod job;
mod link;
pub mod nodes;
mod status;
mod tls;

use std::sync::Arc;

use upstream::{LiveNodes, ResolverPolicy};
use wire::resp::{RespCommands, RespReply};

pub use address::StoreAddress;
pub use job::{StoreBook, StoreJob};
pub use status::{StoreStatus, show};

/// The most commands that one member adds to a pipeline.
pub const MEMBER_COMMANDS_MAX: usize = 4096;

/// A zone that a configuration shares through a store.
pub trait StoreMember: Send + Sync {
    /// The member's part in the exchange, in the control thread.
    fn talk(&self) -> Box<dyn StoreTalk>;
}

/// A member's part in the exchange.
pub trait StoreTalk {
    /// Adds commands to a pipeline, at most [`MEMBER_COMMANDS_MAX`].
    fn ask(&mut self, turn: &StoreTurn<'_>, commands: &mut RespCommands);

    /// Takes the replies to the commands that it has added, in their order. The error is a reason.
    fn take(&mut self, turn: &StoreTurn<'_>, replies: &[RespReply]) -> Result<(), &'static str>;

    /// So many nodes are alive: before anything else, and whenever that changes.
    fn counted(&mut self, nodes: LiveNodes) {
        let _ = nodes;
    }

    /// The store cannot be used from now on. `nodes` is the last known number of nodes.
    fn lost(&mut self, nodes: u32);

    /// What becomes of the zone without the store, for the log.
    fn told_lost(&self, nodes: u32) -> String;

    /// The store still cannot be used.
    fn waits(&mut self) {}

    /// The store can be used, for the first time or again.
    fn found(&mut self);
}

/// The circumstances of one exchange.
pub struct StoreTurn<'a> {
    /// The beginning of every key.
    pub prefix: &'a [u8],
    /// The time of this process ([`net::clock::now_ms`]).
    pub now_ms: u64,
    /// The time that all processes of this machine have ([`net::clock::monotonic_ms`]).
    pub monotonic_ms: u64,
    /// The time of the store, which is the same for all nodes.
    pub store_ms: i64,
    /// The nodes that are alive.
    pub nodes: u32,
    pub status: &'a StoreStatus,
}

/// A store with the members that a configuration has there.
#[derive(Clone)]
struct StorePlan {
    address: StoreAddress,
    /// Looks up the store's name.
    names: ResolverPolicy,
    members: Vec<Arc<dyn StoreMember>>,
}
