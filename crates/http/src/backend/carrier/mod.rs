//! What carries a request to a server and its reply back: a connection that is the request's alone,
//! or a stream on a connection that many requests share.
//!
//! Whoever asks (`call`, `body`) keeps the times, limits and log lines, and nothing here knows
//! them. A carrier owns what is sent of the body, so that it can go on with it while the reply
//! arrives. Dropping a carrier cancels the request.

mod shared_line;
mod socket;
mod source;
mod stream;

use std::io;
use std::task::{Context, Poll};

use ::upstream::pool::{GroupPool, PoolKey, PoolProtocol, PooledConnection};
use net::Stream;

use super::protocol::{Malformed, ReplyReader};
use crate::exchange::RequestBodyError;
pub(crate) use source::RequestSource;
pub(crate) use stream::StreamRequest;

/// One request and its reply, wherever they travel.
pub(crate) trait BackendCarrier: 'static {
    /// What the bytes of the reply mean.
    type Reply: ReplyReader + ?Sized;

    fn reply(&self) -> &Self::Reply;

    fn reply_mut(&mut self) -> &mut Self::Reply;

    /// Sends on; ready once all of the request is sent. `head` stands before the body, and is the
    /// same in each call until it is sent.
    fn poll_send(&mut self, cx: &mut Context<'_>, head: &[u8]) -> Poll<Result<(), Unsent>>;

    /// How much of the request has been sent.
    fn progress(&self) -> &SendProgress;

    /// The head of the reply is there, but not all of the request is sent: whether it goes on
    /// beside the reply's body. Else the rest of it is dropped.
    fn go_on_beside_reply(&mut self) -> bool {
        false
    }

    /// Appends bytes of the reply, at most `most`, for its reader. 0 is the end: of the connection,
    /// unless the reader knows that the reply has ended.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<Result<usize, ReadFailure>>;

    /// Whether the end was not announced although it should have been.
    fn is_cut(&self) -> bool;

    /// Gives up the connection, if it is the request's alone.
    fn take_connection(&mut self) -> Option<PooledConnection>;
}

/// What requests travel on.
pub(crate) trait Line: Sized {
    /// What tells these connections apart in a pool.
    const POOLED_AS: PoolProtocol;

    /// The application protocols (ALPN) that servers are offered, best first.
    const PROTOCOLS: &'static [&'static [u8]];

    /// One that a group's pool has.
    fn take(pool: &GroupPool, key: &PoolKey) -> Option<Self>;

    /// One that is used for a single request after the other.
    fn alone(connection: PooledConnection) -> Self;

    /// A new one, on a connection to the server of that key.
    fn begin(stream: Stream, pool: &GroupPool, key: impl FnOnce() -> PoolKey) -> Self;
}

/// What makes carriers of requests, one for each server that is asked.
pub(crate) trait Carry: 'static {
    /// What the request travels on.
    type Line: Line;

    /// The carrier.
    type Carrier: BackendCarrier;

    /// What stands before the server's address in log lines: `http://`.
    const SCHEMA: &'static str;

    /// The same over TLS.
    const SECURE_SCHEMA: &'static str;

    /// A request that is about to be sent.
    fn carry(&self, line: Self::Line, body: RequestSource) -> Self::Carrier;
}

/// How far a request has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendProgress {
    /// Bytes sent so far.
    pub(crate) written: u64,
    /// Whether any of it cannot be taken back: it was sent, or taken from the client for it.
    pub(crate) has_begun: bool,
    /// Whether everything is sent that has come from the client, and more will come.
    pub(crate) waits_for_client: bool,
    /// Whether all of it is sent.
    pub(crate) is_done: bool,
}

/// Why a request cannot be sent.
pub(crate) enum Unsent {
    /// This call failed.
    Call(&'static str, io::Error),
    /// The server has not looked at the request and never will.
    Refused,
    /// The client's body does not come.
    Client(RequestBodyError),
}

/// Why a reply cannot be read.
pub(crate) enum ReadFailure {
    /// The connection failed.
    Call(io::Error),
    /// The server has not looked at the request and never will.
    Refused,
    /// What the server sent is no reply, or no more of it comes: a line for the log.
    Peer(Malformed),
}
