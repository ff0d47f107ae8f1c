//! Carriers: each sends one request to a server and receives its reply, over a connection of its
//! own or as a stream of a shared connection.
//!
//! Time limits, size limits and log lines are left to the users (`call`, `body`). A carrier owns
//! the body of the request, so that it can send the rest while the reply arrives. Dropping a
//! carrier cancels the request.

mod multiplexed;
mod socket;
mod source;
mod stream;

use std::io;
use std::task::{Context, Poll};

use ::upstream::pool::{GroupPool, PoolKey, PoolProtocol, PooledConnection};
use net::Stream;

use super::protocol::{ProtocolError, ReplyReader};
use crate::exchange::RequestBodyError;
pub(crate) use source::{RequestSource, StreamedSource};
pub(crate) use stream::{GrpcRequest, StreamRequest};

/// One request and its reply on any kind of connection.
pub(crate) trait BackendCarrier: 'static {
    type Reply: ReplyReader + ?Sized;

    fn reply(&self) -> &Self::Reply;

    fn reply_mut(&mut self) -> &mut Self::Reply;

    /// Sends more of the request; ready once all of it is sent. `head` precedes the body, and is
    /// the same in each call until it is sent.
    fn poll_send(&mut self, cx: &mut Context<'_>, head: &[u8]) -> Poll<Result<(), CarrierError>>;

    /// How much of the request has been sent.
    fn progress(&self) -> &SendProgress;

    /// Called when the head of the reply has arrived before all of the request was sent. Whether
    /// the request continues while the reply's body arrives; otherwise the rest of it is dropped.
    fn continue_beside_reply(&mut self) -> bool {
        false
    }

    /// Appends bytes of the reply, at most `most`, for its reader. 0 is the end: of the connection,
    /// unless the reader knows that the reply has ended.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<Result<usize, CarrierError>>;

    /// Whether the connection ended without TLS's close_notify although one was due.
    fn is_cut(&self) -> bool;

    /// Takes the source of an arriving body out, to send it again from its beginning; `None` if a
    /// part of what the client has sent is gone.
    fn take_source(&mut self) -> Option<Box<StreamedSource>> {
        None
    }

    /// Takes the connection out, if this request is the only one on it.
    fn take_connection(&mut self) -> Option<PooledConnection>;
}

/// A connection that carriers use, exclusive or shared.
pub(crate) trait CarrierConnection: Sized {
    /// The protocol in the pool's key.
    const POOLED_AS: PoolProtocol;

    /// The application protocols (ALPN) that servers are offered, best first.
    const PROTOCOLS: &'static [&'static [u8]];

    /// Takes a connection from a group's pool.
    fn take(pool: &GroupPool, key: &PoolKey) -> Option<Self>;

    /// A connection outside of any pool, for one request at a time.
    fn alone(connection: PooledConnection) -> Self;

    /// Tells other requests, until it is dropped, that a connection is being opened.
    type Opening;

    /// Waits for the connection that another request opens: whether it can be shared.
    type OpeningWait: Future<Output = bool> + Unpin;

    /// Called before a connection with that key is opened.
    fn opening(pool: &GroupPool, key: &PoolKey) -> Self::Opening;

    /// Waits for a connection that another request opens, to share it; `None`: this request opens
    /// one.
    fn join_opening(pool: &GroupPool, key: &PoolKey) -> Option<Self::OpeningWait>;

    /// A new connection on this stream, to the server of that key.
    fn begin(
        stream: Stream,
        pool: &GroupPool,
        key: impl FnOnce() -> PoolKey,
        opening: Self::Opening,
    ) -> Self;

    /// Whether it comes from a pool, so that the server may have closed it meanwhile.
    fn is_reused(&self) -> bool;
}

/// Makes the carrier of a request, a new one for each server that is tried.
pub(crate) trait CarrierFactory: 'static {
    /// The connection that a carrier needs.
    type Connection: CarrierConnection;

    type Carrier: BackendCarrier;

    /// The scheme before the server's address in log lines: `http://`.
    const SCHEMA: &'static str;

    const SECURE_SCHEMA: &'static str;

    /// The carrier of a request of which nothing has been sent.
    fn carrier(&self, connection: Self::Connection, body: RequestSource) -> Self::Carrier;
}

/// How far a request has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendProgress {
    pub(crate) written: u64,
    /// Whether a part of it was sent, or read from the client, so that it cannot simply be
    /// repeated.
    pub(crate) has_begun: bool,
    /// Whether everything received from the client is sent, and more will come.
    pub(crate) waits_for_client: bool,
    /// Whether all of it is sent.
    pub(crate) is_done: bool,
}

/// Why a request cannot be sent, or its reply not be read.
pub(crate) enum CarrierError {
    Call(&'static str, io::Error),
    /// The server did not process the request and will not.
    Refused,
    /// As [`Refused`](Self::Refused), because the server ends the connection in good order.
    Leaving,
    /// The server sent an invalid reply or aborted it: the message for the log.
    Peer(ProtocolError),
    /// The client did not send its body.
    Client(RequestBodyError),
}
