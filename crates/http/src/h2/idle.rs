//! A parked connection.

use metrics::WaitingConnection;
use net::Stream;
use wire::http2::RestingEndpoint;

use crate::client::Resting;
use crate::drive::WorkerContext;

/// The state of a parked connection, without its socket.
pub(crate) struct IdleHttp2 {
    pub(super) client: Resting,
    pub(super) endpoint: RestingEndpoint,
    /// When the last stream ended.
    pub(super) since_ms: u64,
    /// The second up to which the endpoint's budgets have grown.
    pub(super) replenished_s: u64,
    pub(super) _waiting: WaitingConnection,
}

/// Why a parked connection gets a task again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeReason {
    Input,
    /// Its time is over, or the worker leaves.
    End,
    /// Its client is to go elsewhere.
    Drain,
    /// Others need its place.
    GiveWay,
}

/// A connection to park, with its socket.
pub(crate) struct ParkableHttp2 {
    pub(crate) stream: Stream,
    pub(crate) idle: Box<IdleHttp2>,
    pub(crate) left_ms: u64,
}

impl IdleHttp2 {
    /// Whether its client is to go elsewhere and was not told so.
    pub(crate) fn must_say_end(&self, context: &WorkerContext) -> bool {
        !self.endpoint.has_announced_end() && context.sends_away(self.client.serial)
    }

    /// The slot of the listening socket that accepted it.
    pub(crate) fn listen(&self) -> u32 {
        self.client.listen
    }
}
