//! The driver of HTTP/2 connections: one task each, many requests at a time.
//!
//! ```text
//! turn:  read --frames--> streams --run--> output --one write--> socket
//!          ^                                                      |
//!          +-------------------- until nothing is ready ----------+
//! ```
//!
//! Frames, states and windows are `wire::http2`'s, and what happens to a request between its head
//! and the end of its reply is `drive`'s. A [`StreamLink`](stream_link::StreamLink) gives an
//! exchange its body, a [`StreamReply`](stream_reply::StreamReply) takes its reply. What all
//! streams send in a turn goes out in one write.
//!
//! The connection owns the futures of its streams. A client that is gone is seen by each stream
//! itself, which logs and ends, or goes on where it outlives its client. A connection that is cut
//! drops them; each is logged. A panic in one stream costs its connection: the others' exchanges
//! are dropped with it.
//!
//! A connection that has been idle for a moment is parked: its task ends, and what remains of it
//! is an [`IdleHttp2`].

mod connection;
mod deadlines;
mod head;
mod idle;
mod incoming;
mod parking;
mod ready;
mod reply_head;
mod shared;
mod stream_link;
mod stream_reply;
mod streams;
#[cfg(test)]
mod tests;
mod timers;
pub(crate) mod totals;

pub(crate) use connection::serve;
pub(crate) use idle::{IdleHttp2, ParkableHttp2};
pub(crate) use parking::resume;
