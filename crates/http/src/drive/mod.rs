//! The driver of an exchange: handles a request after its head was read, whatever protocol its
//! client speaks.
//!
//! ```text
//! phases --reply--> head, body --> post_action --> log
//!  ^  |
//!  +--+ wait
//! ```
//!
//! A driver of connections (`h1`, `h2`) reads heads, borrows a [`LentExchange`] for each, and gives
//! [`run`] an [`Outlet`] for the reply. Several exchanges of one connection may run at the same
//! time. Cancelling is dropping: an exchange whose future is dropped is logged and given back.
//!
//! Absent: sockets, framing, and whether the connection is kept.

mod context;
mod cut;
mod date;
mod follow_up;
mod lent;
pub(crate) mod limit_rate;
mod outlet;
pub(crate) mod redirect;
mod run;
mod secure;
mod send;
mod server;
#[cfg(test)]
mod tests;
mod tunnel;

pub(crate) use context::{DRAIN_STEPS, OF_ANY_GENERATION, WorkerContext};
pub(crate) use cut::{CutReply, dropped, timed_out};
pub(crate) use date::with_date;
pub(crate) use lent::LentExchange;
pub(crate) use outlet::{BodyBound, Framing, Outlet};
pub(crate) use run::run;
pub(crate) use server::choose_server;

/// The first bytes of a connection, which were read before its driver was chosen.
#[derive(Default)]
pub(crate) struct Preread {
    pub(crate) bytes: Vec<u8>,
    /// The time left for the first head, if a handshake or a PROXY header took some of it.
    pub(crate) left_ms: Option<u64>,
}
