//! Settings for writing replies to the client's socket.

use std::sync::Arc;

use conf::{Buffers, Directive, Load, Milliseconds, Result, Size, Value};

use crate::site::LocationBuilder;
use crate::site::policy::Output;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether the kernel sends files directly from its cache.
    ///
    /// ```nginx
    /// sendfile on;
    /// ```
    sendfile + IF_IN_LOCATION: bool = "off",
    /// The most that is sent on one connection before others are served. 0 means no limit.
    ///
    /// ```nginx
    /// sendfile_max_chunk 512k;
    /// ```
    sendfile_max_chunk: Size = "2m",
    /// Whether the response header is held back until it can be sent with the beginning of the
    /// file.
    ///
    /// ```nginx
    /// sendfile on;
    /// tcp_nopush on;
    /// ```
    tcp_nopush: bool = "off",
    /// Whether small parts of a response are sent at once instead of being collected by the kernel.
    ///
    /// ```nginx
    /// tcp_nodelay on;
    /// ```
    tcp_nodelay: bool = "on",
    /// The longest time between two writes of a response to a client. It is not a limit for the
    /// whole response.
    ///
    /// ```nginx
    /// send_timeout 30s;
    /// ```
    send_timeout: Milliseconds = "60s",
    /// How much space the kernel's buffer must have before the server writes.
    ///
    /// Syntax: SIZE
    /// Default: 0
    /// Differs: no effect on Linux, which has no such option.
    send_lowat: Option<Lowat>,
    /// A part of a response smaller than this is held back until there is more, unless the response
    /// ends or is flushed.
    ///
    /// ```nginx
    /// postpone_output 0;
    /// ```
    postpone_output: Size = "1460",
    /// The number and size of buffers for reading files that the kernel does not send directly.
    ///
    /// ```nginx
    /// output_buffers 1 512k;
    /// ```
    output_buffers: Buffers = "2 32k",
    /// How far the kernel is told to read ahead in a file.
    read_ahead: Size = "0",
    /// Whether responses of unknown length are sent in chunks. With `off`, the connection is closed
    /// after them.
    ///
    /// ```nginx
    /// chunked_transfer_encoding off;
    /// ```
    chunked_transfer_encoding: bool = "on",
    /// Whether a connection that timed out is reset, which frees its memory in the kernel at once.
    ///
    /// ```nginx
    /// reset_timedout_connection on;
    /// ```
    reset_timedout_connection: bool = "off",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.output = Output {
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

/// A size for `SO_SNDLOWAT`, which cannot be set on Linux.
#[derive(Clone, Copy)]
struct Lowat;

impl Value for Lowat {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Size::parse(from, load)?;
        load.warn(from.error("\"send_lowat\" is not supported, ignored"));
        Ok(Self)
    }
}
