//! TLS with clients: settings of a virtual server, and variables.
//!
//! Settings that `stream {}` has as well are in [`shared`]. A server's settings are compiled to a
//! [`ServerTls`], from which `accept` gets sessions; locations have no handler of this feature.

#[cfg(test)]
mod client_tests;
pub mod shared;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::tls::variables::TlsVariables;
use ::tls::{CertificateSlot, ServerTlsParts};
use ::upstream::ResolverPolicy;
use conf::{Load, Result, Size};

use crate::exchange::Exchange;
use crate::site::{LocationBuilder, TlsPolicy};
use crate::variables::VariableTable;

conf::directives! {
    in MAIN | SERVER;

    /// The size of a record, the unit in which data is encrypted. A client can use a record once
    /// all of it has arrived, so smaller ones let it start earlier, but cost more.
    ///
    /// ```nginx
    /// ssl_buffer_size 4k;
    /// ```
    buffer_size: Size = "16k",
    /// Whether a client that resumes a session of TLS 1.3 may send a request together with its
    /// first message (early data, 0-RTT). Such a request may be the replay of another;
    /// `$ssl_early_data` is 1 for it until the handshake is over, and a backend can refuse it with
    /// 425.
    ///
    /// Differs: sessions of such a server are kept in `ssl_session_cache` (without one, in a cache
    /// of 4 MB that belongs to all workers) and not in tickets. Each is used once, so early data
    /// that is replayed to the same process is rejected, and `ssl_session_ticket_key` has no
    /// effect.
    ///
    /// ```nginx
    /// ssl_early_data on;
    /// proxy_set_header Early-Data $ssl_early_data;
    /// ```
    early_data: bool = "off",
}

pub(crate) const VARIABLES: VariableTable =
    VariableTable::new("ngx_http_ssl_module", TlsVariables::<Exchange>::TABLE);

/// The most bytes of early data, as in nginx.
const EARLY_DATA_MAX: u32 = 16 * 1024;

/// The application protocols of HTTP/1 (ALPN).
const HTTP1: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];

pub fn install(
    _: &Arc<Conf>,
    _: &Arc<shared::Conf>,
    _: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    Ok(())
}

/// Compiles the settings of a server.
pub(crate) fn policy(
    conf: &Conf,
    shared: &shared::Conf,
    identity: Vec<Box<[u8]>>,
    names: ResolverPolicy,
    slot: Option<Arc<CertificateSlot>>,
    load: &mut Load<'_>,
) -> Result<TlsPolicy> {
    let parts = ServerTlsParts {
        record_max: conf.buffer_size.0 as usize,
        protocols: HTTP1.map(Box::from).to_vec(),
        identity,
        names,
        slot: slot.clone(),
        early_data_max: if conf.early_data { EARLY_DATA_MAX } else { 0 },
    };
    let tls = shared.server_tls(parts, load)?;
    Ok(TlsPolicy {
        clients: shared.client_verification(tls.is_some(), load)?,
        tls: tls.map(Arc::new),
        rejects_handshakes: shared.rejects_handshakes(),
        slot,
    })
}
