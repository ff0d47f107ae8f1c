//! TLS with clients: settings of a virtual server, and variables.
//!
//! Settings that `stream {}` has as well are in [`shared`]. A server's settings come to a
//! [`ServerTls`], which `accept` asks for a session; nothing hooks into a location.

pub mod shared;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::session::tls::ServerTlsParts;
use ::session::tls::variables::TlsVariables;
use conf::{Load, Result, Size};
use net::tls::ServerTls;

use crate::exchange::Exchange;
use crate::site::{LocationBuilder, TlsPolicy};
use crate::variables::BuiltIn;

conf::directives! {
    in MAIN | SERVER;

    /// The size of a record, the unit in which data is encrypted. A client can use a record once
    /// all of it has arrived, so smaller ones let it start earlier, but cost more.
    ///
    /// ```nginx
    /// ssl_buffer_size 4k;
    /// ```
    buffer_size: Size = "16k",
}

/// `$ssl_protocol` and the others.
pub(crate) const VARIABLES: &[BuiltIn] = TlsVariables::<Exchange>::TABLE;

/// The application protocols of HTTP/1 (ALPN).
const HTTP1: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];

/// Nothing hooks into a location.
pub fn install(
    _: &Arc<Conf>,
    _: &Arc<shared::Conf>,
    _: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    Ok(())
}

/// What a server's settings come to.
pub(crate) fn policy(
    conf: &Conf,
    shared: &shared::Conf,
    identity: Vec<Box<[u8]>>,
    load: &mut Load<'_>,
) -> Result<TlsPolicy> {
    let parts = ServerTlsParts {
        record_max: conf.buffer_size.0 as usize,
        protocols: HTTP1.map(Box::from).to_vec(),
        identity,
    };
    let tls: Option<ServerTls> = shared.server_tls(parts, load)?;
    Ok(TlsPolicy { tls: tls.map(Arc::new), rejects_handshakes: shared.rejects_handshakes() })
}
