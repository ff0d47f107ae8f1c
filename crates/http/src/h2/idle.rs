//! What remains of a connection that is parked.

use net::Stream;
use observe::WaitingConnection;
use wire::http2::RestingEndpoint;

use crate::client::Resting;

/// All that remains of an idle connection but its socket.
pub(crate) struct IdleHttp2 {
    pub(super) client: Resting,
    pub(super) endpoint: RestingEndpoint,
    /// When the last stream ended.
    pub(super) since_ms: u64,
    /// The second up to which the endpoint's budgets have grown.
    pub(super) replenished_s: u64,
    pub(super) _waiting: WaitingConnection,
}

/// A connection to park for the rest of its time.
pub(crate) struct ParkableHttp2 {
    pub(crate) stream: Stream,
    pub(crate) idle: Box<IdleHttp2>,
    pub(crate) left_ms: u64,
}

impl IdleHttp2 {
    /// The listening socket it came by.
    pub(crate) fn listen(&self) -> u32 {
        self.client.listen
    }
}
