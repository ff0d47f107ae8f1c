//! The limits of a connection.

use wire::http2::limits::Http2Limits;
use wire::http2::{Http2Config, WINDOW_DEFAULT, WINDOW_MAX};

/// Above this much unsent output on the connection, streams send no more of their bodies.
pub(crate) const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Above this much unsent output, no streams are opened and nothing is read, because the server
/// does not read.
pub(crate) const OUTPUT_READ_MAX: usize = 4 * OUTPUT_BYTES_MAX;

/// The largest window of a stream whose reader keeps up, for servers that are far away.
pub(crate) const WIDE_WINDOW: u32 = 1024 * 1024;

/// How much the windows of all streams on a connection may exceed the first ones.
pub(crate) const WIDENED_BYTES_MAX: u32 = 4 * WIDE_WINDOW;

/// Interim replies on one stream.
pub(crate) const INTERIM_REPLIES_MAX: usize = 16;

/// How many times larger a header block may be than a head. A block above that limit cannot be
/// decoded and ends the connection.
const BLOCK_FACTOR: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub struct Http2ClientLimits {
    /// Open streams, even if the server allows more.
    pub streams_max: usize,
    /// Open streams until the server has sent its settings. It may refuse those above its limit.
    pub first_streams_max: usize,
    /// The first window of a stream: how many bytes of a reply's body may be unread. At least
    /// [`WINDOW_DEFAULT`], which a server may use before it has our settings. It grows while the
    /// reader keeps up.
    pub stream_window: u32,
    /// Bytes of names and values in a head, or in trailers.
    pub head_bytes_max: u32,
    /// Fields in a head, or in trailers.
    pub fields_max: u32,
    /// How long the server may accept no output while no stream is open. The users of streams have
    /// deadlines of their own.
    pub write_timeout_ms: u64,
    /// How long a server has to send anything after a PING. A PING is sent when a stream is given
    /// up on which nothing was received, if nothing was received on others meanwhile; and when a
    /// stream is opened on a connection that was quiet before.
    pub ping_timeout_ms: u64,
}

impl Default for Http2ClientLimits {
    fn default() -> Self {
        Self {
            streams_max: 128,
            // A server should not allow fewer (RFC 9113, section 6.5.2).
            first_streams_max: 100,
            stream_window: 64 * 1024,
            head_bytes_max: 64 * 1024,
            fields_max: 1000,
            write_timeout_ms: 60_000,
            ping_timeout_ms: 10_000,
        }
    }
}

impl Http2ClientLimits {
    pub(crate) fn stream_window(&self) -> u32 {
        self.stream_window.clamp(WINDOW_DEFAULT, WINDOW_MAX)
    }

    pub(crate) fn config(&self) -> Http2Config {
        let block_bytes_max = self.head_bytes_max.saturating_mul(BLOCK_FACTOR);
        let limits = Http2Limits {
            block_bytes_max,
            fields_bytes_max: block_bytes_max,
            field_bytes_max: block_bytes_max,
            fields_max: self.fields_max,
            ..Http2Limits::default()
        };
        Http2Config {
            max_concurrent_streams: 0,
            stream_window: self.stream_window(),
            max_header_list_size: Some(self.head_bytes_max),
            limits,
            ..Http2Config::default()
        }
    }
}
