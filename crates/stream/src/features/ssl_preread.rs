//! `ssl_preread`: its setting and variables. `crate::preread` reads.

use std::sync::Arc;

use ::session::variables::{BuiltIn, VariableTable};
use conf::Result;

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    in MAIN | SERVER;

    /// Whether a TLS client's first message is read before the connection is passed on, without
    /// terminating TLS. Its values are in `$ssl_preread_server_name` (SNI),
    /// `$ssl_preread_alpn_protocols` (ALPN, separated by commas) and `$ssl_preread_protocol` (the
    /// highest version of TLS). A connection that does not begin with TLS has none and is passed
    /// on. A client that names another `server_name` of the address is served by that server.
    ///
    /// ```nginx
    /// map $ssl_preread_server_name $backend {
    ///     a.example.com 127.0.0.1:8443;
    ///     default       127.0.0.1:9443;
    /// }
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     ssl_preread on;
    ///     proxy_pass $backend;
    /// }
    /// ```
    ssl_preread: bool = "off",
}

pub(crate) const VARIABLES: VariableTable<StreamSession> = VariableTable::new(
    "ngx_stream_ssl_preread_module",
    &[
        BuiltIn::fresh(
            "ssl_preread_server_name",
            "The server name in the client's first message (SNI).",
            |x, out| {
                let hello = x.preread_hello.as_ref();
                hello.map(|hello| out.extend_from_slice(&hello.server_name)).is_some()
            },
        ),
        BuiltIn::fresh(
            "ssl_preread_alpn_protocols",
            "The protocols in the client's first message (ALPN), with commas between them.",
            |x, out| {
                let hello = x.preread_hello.as_ref();
                hello.map(|hello| out.extend_from_slice(&hello.protocols)).is_some()
            },
        ),
        BuiltIn::fresh(
            "ssl_preread_protocol",
            "The highest version of TLS in the client's first message.",
            |x, out| {
                let hello = x.preread_hello.as_ref();
                hello.map(|hello| out.extend_from_slice(hello.version_name().as_bytes())).is_some()
            },
        ),
    ],
);

/// Passes the setting to the server.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    place.server.preread.is_on = conf.ssl_preread;
    Ok(())
}
