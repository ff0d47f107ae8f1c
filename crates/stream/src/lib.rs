//! `stream {}`: serves connections of any protocol.
//!
//! A connection is a session: it runs through nginx's phases once, then its server's content
//! handler has the client's stream until the session is over and logged. Features that `http {}`
//! has as well (maps, geo, logs, variables, choosing servers) are in crates `session` and
//! `upstream`. Deliberately absent: HTTP.

mod builtin;
mod compile;
mod datagrams;
mod features;
mod flow;
mod health;
mod preread;
mod proxy;
mod secure;
mod serve;
mod session;
mod site;
#[cfg(test)]
mod tests;
mod worker;
mod zone_session;

pub use compile::{BLOCKS, StreamPlan, directives, read, variable_docs};
pub use features::control_jobs;
pub use site::{StreamGeneration, StreamListen, StreamSite};
pub use worker::StreamWorker;
