//! `weir load`: the real program against servers that count, and that fail in every way.
//!
//! What it reports is compared with what the server saw, exactly.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod arguments;
mod errors;
mod exact;
mod expect;
mod generator;
mod interrupt;
mod many;
mod on_demand;
mod open;
mod peer;
mod replies;
#[cfg(feature = "script")]
mod script;
#[path = "../server/mod.rs"]
mod server;
mod wrk;
