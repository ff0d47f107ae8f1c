//! `http2` and the settings of HTTP/2 connections.
//!
//! As in nginx, settings that apply before a request names a server
//! (`http2_max_concurrent_streams`, `http2_body_preread_size`) are those of the default server of
//! the listening socket.

#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

use conf::{Directive, Load, Number, Result, Size, Value};
use wire::http2::WINDOW_MAX;
use wire::http2::frame::FRAME_PAYLOAD_MAX;

use crate::site::{Http2Policy, LocationBuilder};
pub(crate) use variables::VARIABLES;

conf::directives! {
    in MAIN;

    /// Whether the server speaks HTTP/2. On a plain listening socket, a client has to know and
    /// begins with HTTP/2's preface; there is no upgrade from HTTP/1. A request for a server
    /// without HTTP/2, on a connection with it, is answered with 421.
    ///
    /// ```nginx
    /// server {
    ///     listen 8080;
    ///     http2 on;
    /// }
    /// ```
    http2 + SERVER: bool = "off",
    /// The largest number of requests in progress on one HTTP/2 connection.
    ///
    /// ```nginx
    /// http2_max_concurrent_streams 64;
    /// ```
    http2_max_concurrent_streams + SERVER: Number = "128",
    /// How much of a request's body a client may send before the body is read.
    ///
    /// Syntax: SIZE
    http2_body_preread_size + SERVER: PrereadSize = "64k",
    /// The largest DATA frame of a response.
    ///
    /// Syntax: SIZE
    http2_chunk_size + SERVER + LOCATION: ChunkSize = "8k",
    /// The size of the buffer into which nginx reads from HTTP/2 connections.
    ///
    /// Syntax: SIZE
    /// Differs: checked, but has no effect; connections are lent buffers while there is something
    /// to read.
    http2_recv_buffer_size: RecvBufferSize = "256k",
    /// The number of lists by which nginx finds the streams of a connection.
    ///
    /// Syntax: NUMBER
    /// Differs: checked, but has no effect.
    http2_streams_index_size + SERVER: StreamsIndexSize = "32",
}

/// Passes the size of frames to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.http2_chunk_size = conf.http2_chunk_size.0;
    Ok(())
}

impl Conf {
    pub fn policy(&self) -> Http2Policy {
        Http2Policy {
            enabled: self.http2,
            max_concurrent_streams: u32::try_from(self.http2_max_concurrent_streams.0)
                .unwrap_or(u32::MAX),
            body_preread_size: self.http2_body_preread_size.0,
        }
    }
}

#[derive(Clone, Copy)]
struct PrereadSize(u32);

impl Value for PrereadSize {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let Size(size) = Size::parse(from, load)?;
        match u32::try_from(size) {
            Ok(size) if size <= WINDOW_MAX => Ok(Self(size)),
            _ => Err(from.error(format!("the maximum body preread buffer size is {WINDOW_MAX}"))),
        }
    }
}

#[derive(Clone, Copy)]
struct ChunkSize(usize);

impl Value for ChunkSize {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        match Size::parse(from, load)? {
            Size(0) => Err(from.error("the http2 chunk size cannot be zero")),
            Size(size) => Ok(Self(size.min(FRAME_PAYLOAD_MAX.into()) as usize)),
        }
    }
}

/// The bytes of a frame's beginning that nginx keeps before its buffer.
const STATE_BUFFER_SIZE: u64 = 16;

#[derive(Clone, Copy)]
struct RecvBufferSize;

impl Value for RecvBufferSize {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        match Size::parse(from, load)? {
            Size(0..=STATE_BUFFER_SIZE) => Err(from.refuse("value is too small")),
            Size(_) => Ok(Self),
        }
    }
}

#[derive(Clone, Copy)]
struct StreamsIndexSize;

impl Value for StreamsIndexSize {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let size = Number::parse(from, load)?.0;
        match size.is_power_of_two() {
            true => Ok(Self),
            false => Err(from.refuse("must be a power of two")),
        }
    }
}
