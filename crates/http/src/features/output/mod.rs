//! How replies are written to the client's socket.

use std::sync::Arc;

use conf::{Buffers, Directive, Load, Milliseconds, Result, Size, Value};

use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether files are sent by the kernel.
    sendfile + IF_IN_LOCATION: bool = "off",
    /// Most that one connection sends before others get their turn; 0: any amount.
    sendfile_max_chunk: Size = "2m",
    /// Whether a head waits for the beginning of the file behind it.
    tcp_nopush: bool = "off",
    /// Whether small writes are sent at once.
    tcp_nodelay: bool = "on",
    /// Time between two writes to the client.
    send_timeout: Milliseconds = "60s",
    /// Bytes that the kernel must have room for; Linux does not know how.
    send_lowat: Option<Lowat>,
    /// Less than this waits for more of the reply.
    postpone_output: Size = "1460",
    /// Buffers for reading files that are not sent by the kernel.
    output_buffers: Buffers = "2 32k",
    /// Least that the kernel is told to read ahead of a file.
    read_ahead: Size = "0",
    /// Whether replies of unknown length are chunked.
    chunked_transfer_encoding: bool = "on",
    /// Whether a connection that timed out is reset.
    reset_timedout_connection: bool = "off",
}

/// What the driver asks about sending.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// `sendfile`
    pub sendfile: bool,
    /// `sendfile_max_chunk`; 0: any.
    pub sendfile_max_chunk: u64,
    /// `tcp_nopush`
    pub tcp_nopush: bool,
    /// `tcp_nodelay`
    pub tcp_nodelay: bool,
    /// `send_timeout`
    pub send_timeout_ms: u64,
    /// `postpone_output`
    pub postpone_output: u64,
    /// Bytes read from a file at once where `sendfile` is off.
    pub buffer_size: u64,
    /// `read_ahead`
    pub read_ahead: u64,
    /// `chunked_transfer_encoding`
    pub chunked_transfer_encoding: bool,
    /// `reset_timedout_connection`
    pub reset_timedout_connection: bool,
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.output = Output {
        sendfile: conf.sendfile,
        sendfile_max_chunk: conf.sendfile_max_chunk.0,
        tcp_nopush: conf.tcp_nopush,
        tcp_nodelay: conf.tcp_nodelay,
        send_timeout_ms: conf.send_timeout.0,
        postpone_output: conf.postpone_output.0,
        buffer_size: conf.output_buffers.size,
        read_ahead: conf.read_ahead.0,
        chunked_transfer_encoding: conf.chunked_transfer_encoding,
        reset_timedout_connection: conf.reset_timedout_connection,
    };
    Ok(())
}

/// Bytes of `SO_SNDLOWAT`, which Linux refuses to set.
#[derive(Clone, Copy)]
struct Lowat;

impl Value for Lowat {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Size::parse(from, load)?;
        load.warn(from.error("\"send_lowat\" is not supported, ignored"));
        Ok(Self)
    }
}
