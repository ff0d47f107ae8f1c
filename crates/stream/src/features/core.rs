//! Settings of every server: options of its sockets, reading before content, the timeout of a PROXY
//! header.

use std::sync::Arc;

use conf::{Milliseconds, Result, Size};

use crate::site::ServerBuilder;

conf::directives! {
    in MAIN | SERVER;

    /// Whether small writes are sent at once instead of collected by the kernel.
    ///
    /// ```nginx
    /// tcp_nodelay off;
    /// ```
    tcp_nodelay: bool = "on",
    /// How long a client may take to send the PROXY protocol header.
    ///
    /// ```nginx
    /// proxy_protocol_timeout 5s;
    /// ```
    proxy_protocol_timeout: Milliseconds = "30s",
    /// How many bytes of a client are read at most before its connection is passed on, for
    /// `ssl_preread`. A client whose first message is longer is turned away.
    ///
    /// ```nginx
    /// preread_buffer_size 8k;
    /// ```
    preread_buffer_size: Size = "16k",
    /// How long a client may take to send what `ssl_preread` waits for.
    ///
    /// ```nginx
    /// preread_timeout 5s;
    /// ```
    preread_timeout: Milliseconds = "30s",
}

/// Passes the settings to the server.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    place.server.tcp_nodelay = conf.tcp_nodelay;
    place.server.preread.buffer_size =
        usize::try_from(conf.preread_buffer_size.0).unwrap_or(usize::MAX);
    place.server.preread.timeout_ms = conf.preread_timeout.0;
    place.server.proxy_protocol_timeout_ms = conf.proxy_protocol_timeout.0;
    Ok(())
}
