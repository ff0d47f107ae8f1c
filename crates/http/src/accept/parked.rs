//! Idle connections without a task, whatever their protocol.

use std::rc::Rc;

use net::Stream;

use crate::drive::WorkerContext;
use crate::h1::{self, ConnectionState, ParkableConnection, Parked};
use crate::h2::{self, IdleHttp2, ParkableHttp2, ResumeReason};

/// All that remains of an idle connection but its socket.
pub(crate) enum ParkedConnection {
    Http1(Parked),
    Http2(Box<IdleHttp2>, ConnectionState),
}

/// A connection to park for the rest of its time.
pub(crate) struct UnusedConnection {
    pub(crate) stream: Stream,
    pub(crate) parked: ParkedConnection,
    pub(crate) left_ms: u64,
}

impl ParkedConnection {
    /// The listening socket it came by.
    pub(crate) fn listen(&self) -> u32 {
        match self {
            Self::Http1(parked) => parked.client.listen,
            Self::Http2(idle, _) => idle.listen(),
        }
    }

    /// Whether its client is to go elsewhere and can be told so, which it was not.
    pub(crate) fn must_say_end(&self, context: &WorkerContext) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(idle, _) => idle.must_say_end(context),
        }
    }

    /// Whether its client is told before it is closed.
    pub(crate) fn has_last_words(&self) -> bool {
        matches!(self, Self::Http2(..))
    }
}

impl UnusedConnection {
    pub(super) fn http1(unused: ParkableConnection) -> Self {
        let ParkableConnection { stream, parked, left_ms } = unused;
        Self { stream, parked: ParkedConnection::Http1(parked), left_ms }
    }

    pub(super) fn http2(unused: ParkableHttp2, held: ConnectionState) -> Self {
        let ParkableHttp2 { stream, idle, left_ms } = unused;
        Self { stream, parked: ParkedConnection::Http2(idle, held), left_ms }
    }
}

/// Goes on with a connection that was parked, perhaps only to tell its client that it ends.
pub(crate) async fn resume(
    context: Rc<WorkerContext>,
    stream: Stream,
    parked: ParkedConnection,
    reason: ResumeReason,
) -> Option<UnusedConnection> {
    match parked {
        ParkedConnection::Http1(parked) => {
            h1::resume(context, stream, parked).await.map(UnusedConnection::http1)
        }
        // Boxed: connections of HTTP/1 need no memory for it.
        ParkedConnection::Http2(idle, held) => Box::pin(h2::resume(context, stream, *idle, reason))
            .await
            .map(|unused| UnusedConnection::http2(unused, held)),
    }
}
