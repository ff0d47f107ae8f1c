//! Sends requests: finds a connection or the address for a new one, and runs the exchange.
//!
//! A server may close an idle connection at any time, perhaps while a request is on its way to it.
//! If nothing of the reply has arrived, the request is sent once more, on a new connection, unless
//! the server may have processed it and processing it twice may do harm.

use std::rc::Rc;

use net::Timer;
use upstream::ResolverPolicy;
use wire::Method;

use crate::error::{FetchError, FetchFault};
use crate::exchange::FetchExchange;
use crate::kept::{FetchConnection, KeptConnections};
use crate::limits::FetchLimits;
use crate::opening::FetchOpening;
use crate::progress::FetchProgress;
use crate::request::FetchRequest;
use crate::response::FetchResponse;

/// Sends requests for one owner, on one worker.
pub struct Fetcher {
    names: ResolverPolicy,
    kept: Rc<KeptConnections>,
}

#[derive(Clone, Default)]
pub struct FetchSettings {
    pub names: ResolverPolicy,
    /// Idle connections that are kept for further requests, to all origins together. With 0, every
    /// request is sent with `Connection: close`.
    pub idle_connections_max: usize,
    /// How long each idle connection is kept.
    pub idle_ms: u64,
}

impl Fetcher {
    pub fn new(settings: FetchSettings) -> Self {
        let FetchSettings { names, idle_connections_max, idle_ms } = settings;
        Self { names, kept: KeptConnections::new(idle_connections_max, idle_ms) }
    }

    /// Sends a request and returns the reply, whatever its status is. Redirects are replies.
    ///
    /// Must be polled on a worker. Dropping the future closes the connection.
    pub async fn send(
        &self,
        request: &FetchRequest,
        limits: &FetchLimits,
    ) -> Result<FetchResponse, FetchError> {
        let progress = FetchProgress::new(&request.origin.place);
        let timer = Timer::new();
        timer.set(limits.total_ms);
        let fetching = Fetching { fetcher: self, request, limits, progress: &progress };
        let done = timer.limit(fetching.run()).await;
        let done = done.unwrap_or(Err(FetchFault::NotDone(limits.total_ms)));
        done.map_err(|fault| progress.error(fault))
    }
}

/// A request that failed on its connection.
struct FailedExchange {
    fault: FetchFault,
    /// Whether it may be sent on another connection.
    may_be_repeated: bool,
}

struct Fetching<'a> {
    fetcher: &'a Fetcher,
    request: &'a FetchRequest,
    limits: &'a FetchLimits,
    progress: &'a FetchProgress<'a>,
}

impl Fetching<'_> {
    async fn run(&self) -> Result<FetchResponse, FetchFault> {
        let (origin, kept) = (&self.request.origin, &self.fetcher.kept);
        let head = self.request.head(!kept.keeps_any()).map_err(FetchFault::InvalidRequest)?;
        if let Some(connection) = kept.take(origin) {
            self.progress.address.replace(Some(connection.address.clone()));
            match self.exchange(connection, &head).await {
                Err(failed) if failed.may_be_repeated => {}
                done => return done.map_err(|failed| failed.fault),
            }
        }
        let opening = FetchOpening {
            names: &self.fetcher.names,
            origin,
            limits: self.limits,
            progress: self.progress,
        };
        let connection = opening.connect().await?;
        self.exchange(connection, &head).await.map_err(|failed| failed.fault)
    }

    async fn exchange(
        &self,
        connection: FetchConnection,
        head: &[u8],
    ) -> Result<FetchResponse, FailedExchange> {
        let FetchConnection { stream, address } = connection;
        let to_head = self.request.method == Method::Head;
        let mut exchange =
            FetchExchange::new(stream, (head, &self.request.body), to_head, self.limits);
        if let Err(fault) = exchange.run(|step| self.progress.step.set(step)).await {
            let may_be_repeated = self.may_be_repeated(&exchange, &fault);
            return Err(FailedExchange { fault, may_be_repeated });
        }
        let (stream, response) = exchange.end();
        if let Some(stream) = stream {
            let connection = FetchConnection { stream, address };
            self.fetcher.kept.keep(&self.request.origin, connection);
        }
        Ok(response)
    }

    /// Whether the same request may be sent on another connection. If a write to a TLS session
    /// fails, it is unknown how much of the request was sent.
    fn may_be_repeated(&self, exchange: &FetchExchange<'_>, fault: &FetchFault) -> bool {
        let is_lost = matches!(fault, FetchFault::Closed | FetchFault::Connection(_));
        let has_left = exchange.has_begun() || self.request.origin.transport.is_some();
        is_lost && !exchange.has_reply() && (!has_left || self.request.may_be_repeated())
    }
}
