//! An HTTP/2 connection to a server, shared by many requests of this worker as streams.

use ::upstream::pool::{
    GroupPool, OpeningWait, PoolKey, PoolProtocol, PooledConnection, SharedConnection,
    SharedOpening,
};
use http2_client::{ClientStream, Http2Client, Http2ClientLimits};
use net::Stream;
use wire::http2::FieldWriter;

use super::CarrierConnection;

/// The largest head of a reply that the connection accepts. Each request's own limit is lower.
const HEAD_BYTES_MAX: u32 = 256 * 1024;

/// A connection that was just opened, or one from the pool.
pub(crate) struct MultiplexedConnection {
    client: PooledClient,
    /// The pool it is added to once its first stream is open, for which other requests may wait.
    joins: Option<(GroupPool, PoolKey, Option<SharedOpening>)>,
}

/// The connection as the pool stores it: a newtype, since trait and client are in other crates.
#[derive(Clone)]
struct PooledClient(Http2Client);

impl MultiplexedConnection {
    /// Opens a stream, whose head `head` writes; `None`: the connection takes no more streams.
    pub(super) fn open(
        &mut self,
        head: &mut dyn FnMut(&mut FieldWriter<'_>),
        end_stream: bool,
    ) -> Option<ClientStream> {
        let stream = self.client.0.open(head, end_stream);
        if let Some((pool, key, opening)) = self.joins.take() {
            pool.keep_shared(key, self.client.clone());
            opening.into_iter().for_each(SharedOpening::succeed);
        }
        stream
    }
}

impl CarrierConnection for MultiplexedConnection {
    const POOLED_AS: PoolProtocol = PoolProtocol::Http2;
    const PROTOCOLS: &'static [&'static [u8]] = &[b"h2"];

    fn take(pool: &GroupPool, key: &PoolKey) -> Option<Self> {
        Some(Self { client: pool.take_shared(key)?, joins: None })
    }

    fn alone(connection: PooledConnection) -> Self {
        let limits = Http2ClientLimits { head_bytes_max: HEAD_BYTES_MAX, ..Default::default() };
        let client = Http2Client::start(connection.stream, limits);
        Self { client: PooledClient(client), joins: None }
    }

    type Opening = Option<SharedOpening>;
    type OpeningWait = OpeningWait;

    fn opening(pool: &GroupPool, key: &PoolKey) -> Option<SharedOpening> {
        pool.begin_opening(key)
    }

    fn join_opening(pool: &GroupPool, key: &PoolKey) -> Option<OpeningWait> {
        pool.join_opening(key)
    }

    fn begin(
        stream: Stream,
        pool: &GroupPool,
        key: impl FnOnce() -> PoolKey,
        opening: Option<SharedOpening>,
    ) -> Self {
        let alone = Self::alone(PooledConnection::new(stream));
        Self { joins: Some((*pool, key(), opening)), ..alone }
    }

    fn is_reused(&self) -> bool {
        self.joins.is_none()
    }
}

impl SharedConnection for PooledClient {
    fn free_streams(&self) -> usize {
        self.0.free_streams()
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    fn idle_since_ms(&self) -> Option<u64> {
        self.0.idle_since_ms()
    }

    fn close_when_idle(&self) {
        self.0.close_when_idle();
    }

    fn rest(&self) {
        self.0.rest();
    }
}
