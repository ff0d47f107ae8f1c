//! The client's end of HTTP/2 connections: many requests at once on one connection to a server.
//!
//! An [`Http2Client`] is a connection, owned by a task of its own on the worker that started it.
//! [`Http2Client::open`] sends the head of a request on a new stream. Through its [`ClientStream`],
//! the request's body is sent and the reply is received, both at once.
//!
//! Deliberately absent: connecting, pools, retries, the deadlines of requests, and the meaning of
//! fields.
//!
//! Invariants: a stream that is not read or not sent stalls no other stream. Whatever a server
//! does, the memory of a connection is bounded ([`Http2ClientLimits`]). A [`ClientStream`] that
//! waits is woken when its connection ends.

mod client;
mod connection;
mod events;
mod failure;
mod limits;
mod state;
mod stream;
mod stream_state;
#[cfg(test)]
mod tests;

pub use client::Http2Client;
pub use failure::StreamFailure;
pub use limits::Http2ClientLimits;
pub use stream::ClientStream;
pub use stream_state::ClientHead;
