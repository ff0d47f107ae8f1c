//! A connection of HTTP/2 to a server, on which requests of this worker are streams.

use ::upstream::pool::{GroupPool, PoolKey, PoolProtocol, PooledConnection, SharedConnection};
use http2_client::{ClientStream, Http2Client, Http2ClientLimits};
use net::Stream;
use wire::http2::FieldWriter;

use super::Line;

/// Bytes of a reply's head. Each request has its own limit below that.
const HEAD_BYTES_MAX: u32 = 256 * 1024;

/// A connection that one request has just opened, or that the pool has for all.
pub(crate) struct SharedLine {
    client: PooledClient,
    /// Where it is kept for others once it has its first stream.
    kept_by: Option<(GroupPool, PoolKey)>,
}

/// A connection as the pool has it.
#[derive(Clone)]
struct PooledClient(Http2Client);

impl SharedLine {
    /// Opens a stream with the head that is written; `None`: there is no room for one.
    pub(super) fn open(
        &mut self,
        head: &mut dyn FnMut(&mut FieldWriter<'_>),
        end_stream: bool,
    ) -> Option<ClientStream> {
        let stream = self.client.0.open(head, end_stream);
        if let Some((pool, key)) = self.kept_by.take() {
            pool.keep_shared(key, self.client.clone());
        }
        stream
    }
}

impl Line for SharedLine {
    const POOLED_AS: PoolProtocol = PoolProtocol::Http2;
    const PROTOCOLS: &'static [&'static [u8]] = &[b"h2"];

    fn take(pool: &GroupPool, key: &PoolKey) -> Option<Self> {
        Some(Self { client: pool.take_shared(key)?, kept_by: None })
    }

    fn alone(connection: PooledConnection) -> Self {
        let limits = Http2ClientLimits { head_bytes_max: HEAD_BYTES_MAX, ..Default::default() };
        let client = Http2Client::start(connection.stream, limits);
        Self { client: PooledClient(client), kept_by: None }
    }

    fn begin(stream: Stream, pool: &GroupPool, key: impl FnOnce() -> PoolKey) -> Self {
        let alone = Self::alone(PooledConnection::new(stream));
        Self { kept_by: Some((*pool, key())), ..alone }
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
}
