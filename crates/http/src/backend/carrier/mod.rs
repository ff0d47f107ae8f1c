//! What carries a request to a server and its reply back: a connection that is the request's alone,
//! or a stream on a connection that many requests share.
//!
//! Whoever asks (`call`, `body`) keeps the times, limits and log lines, and nothing here knows
//! them. A carrier owns what is sent of the body, so that it can go on with it while the reply
//! arrives. Dropping a carrier cancels the request.

mod socket;
mod source;

use std::io;
use std::task::{Context, Poll};

use ::upstream::pool::PooledConnection;

use super::protocol::{Protocol, ReplyReader, Start};
use crate::exchange::RequestBodyError;
pub(crate) use socket::SocketCarrier;
pub(crate) use source::RequestSource;

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
    fn progress(&self) -> SendProgress;

    /// The head of the reply is there, but not all of the request is sent: whether it goes on
    /// beside the reply's body. Else the rest of it is dropped.
    fn go_on_beside_reply(&mut self) -> bool {
        false
    }

    /// Appends bytes of the reply, at most `most`, for its reader. 0 is the end.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>>;

    /// Whether the end was not announced although it should have been.
    fn is_cut(&self) -> bool;

    /// Gives up the connection, if it is the request's alone.
    fn take_connection(&mut self) -> Option<PooledConnection>;
}

/// What makes carriers of requests, one for each server that is asked.
pub(crate) trait Carry: 'static {
    /// The carrier.
    type Carrier: BackendCarrier;

    /// What stands before the server's address in log lines: `http://`.
    const SCHEMA: &'static str;

    /// The same over TLS.
    const SECURE_SCHEMA: &'static str;

    /// A request that is about to be sent on this connection.
    fn carry(&self, connection: PooledConnection, body: RequestSource) -> Self::Carrier;
}

impl<S: Start> Carry for S {
    type Carrier = SocketCarrier<S::Protocol>;
    const SCHEMA: &'static str = S::SCHEMA;
    const SECURE_SCHEMA: &'static str = S::SECURE_SCHEMA;

    fn carry(&self, connection: PooledConnection, body: RequestSource) -> Self::Carrier {
        SocketCarrier::new(connection, self.start(), body)
    }
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
    /// The client's body does not come.
    Client(RequestBodyError),
}
