//! The driver of HTTP/2 connections: one task each, many requests at a time.
//!
//! ```text
//! turn:  read --frames--> streams --run--> output --one write--> socket
//!          ^                                                      |
//!          +-------------------- until nothing is ready ----------+
//! ```
//!
//! `wire::http2` handles frames, states and windows. `drive` runs a request from its head to the
//! end of its reply. A [`StreamLink`](stream_link::StreamLink) gives an exchange its body, and a
//! [`StreamReply`](stream_reply::StreamReply) sends its reply. The output of all streams in a turn
//! is sent with one write.
//!
//! The connection owns the futures of its streams. When the client is gone, each stream logs that
//! and ends, or continues if its request outlives the client. Dropping the connection drops its
//! streams; each is logged. A panic in one stream ends the connection with all its streams.
//!
//! A connection that has been idle for a moment is parked: its task ends, and only an [`IdleHttp2`]
//! remains.

mod connection;
mod deadlines;
mod head;
mod idle;
mod incoming;
mod parking;
mod ready;
mod reply_head;
mod request_trailers;
mod shared;
mod stream_link;
mod stream_reply;
mod streams;
#[cfg(test)]
pub(crate) mod tests;
mod timers;
pub(crate) mod totals;

pub(crate) use connection::serve;
pub(crate) use idle::{IdleHttp2, ParkableHttp2, ResumeReason};
pub(crate) use parking::resume;
