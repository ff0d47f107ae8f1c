//! Parking idle connections and resuming them.

use std::rc::Rc;

use net::{SocketProbe, Stream, clock};
use wire::http2::{Http2Code, Http2Endpoint};

use super::connection::{self, Http2Begin, Http2Connection};
use super::idle::{IdleHttp2, ParkableHttp2, ResumeReason};
use super::shared::Http2Shared;
use super::timers::Http2Timers;
use crate::client::Client;
use crate::drive::WorkerContext;

/// Resumes a parked connection, perhaps only to end it.
pub(crate) async fn resume(
    context: Rc<WorkerContext>,
    stream: Stream,
    idle: IdleHttp2,
    reason: ResumeReason,
) -> Option<ParkableHttp2> {
    let IdleHttp2 { client, endpoint, since_ms, replenished_s, _waiting: waiting } = idle;
    drop(waiting);
    let client = Rc::new(Client::wake(client, SocketProbe::new(&stream)));
    let config = connection::config_of(&context, &client)?;
    let mut endpoint = Http2Endpoint::wake(endpoint, config.limits);
    if matches!(reason, ResumeReason::End | ResumeReason::GiveWay) {
        endpoint.go_away(Http2Code::NO_ERROR);
    }
    let timers = Http2Timers::next(since_ms, replenished_s);
    let gives_way = reason == ResumeReason::GiveWay;
    let begin = Http2Begin { endpoint, timers, input: Vec::new(), gives_way };
    connection::run_connection(context, client, stream, begin).await
}

impl<F: Future<Output = ()>> Http2Connection<F> {
    /// Whether an idle connection can be parked.
    pub(super) fn can_park(&self) -> bool {
        self.context.can_park
            && self.context.keeps(&self.client)
            && self.idle_left_ms() > 0
            && self.input.is_empty()
            && self.shared.endpoint.borrow().can_rest()
            // A subrequest of the last stream may still hold its link.
            && Rc::strong_count(&self.shared) == 1
    }

    /// What is left of `keepalive_timeout`.
    pub(super) fn idle_left_ms(&self) -> u64 {
        let timeout_ms = self.policy(|location| location.core.keepalive.timeout_ms);
        (self.timers.since_ms + timeout_ms).saturating_sub(clock::now_ms())
    }

    /// Ends the task and keeps the state. `None` if something else holds the connection, which
    /// [`Self::can_park`] rules out.
    pub(super) fn park(self) -> Option<ParkableHttp2> {
        let left_ms = self.idle_left_ms();
        let Self { client, stream, shared, timers, waiting, .. } = self;
        let endpoint = Rc::into_inner(shared).map(Http2Shared::into_endpoint)?;
        let idle = IdleHttp2 {
            client: client.rest(),
            endpoint: endpoint.rest(),
            since_ms: timers.since_ms,
            replenished_s: timers.replenished_s(),
            _waiting: waiting?,
        };
        Some(ParkableHttp2 { stream, idle: Box::new(idle), left_ms })
    }
}
