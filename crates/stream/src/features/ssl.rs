//! TLS with clients: settings of a server, and variables.
//!
//! Settings that `http {}` has as well are in [`shared`].

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::variables::VariableTable;
use ::tls::ServerTlsParts;
use ::tls::variables::TlsVariables;
use conf::{Directive, Load, Milliseconds, Result, Value};

use crate::session::StreamSession;
use crate::site::{ServerBuilder, StreamTls};

/// The settings of TLS that `http {}` has as well (`tls`).
pub mod shared {
    use std::sync::Arc;

    use ::session::variables::VariableTable;
    use ::tls::client_variables::ClientVariables;
    pub use ::tls::{Conf, Layer};
    use conf::Result;

    use crate::session::StreamSession;
    use crate::site::ServerBuilder;

    pub(crate) const VARIABLES: VariableTable<StreamSession> =
        VariableTable::new("ngx_stream_ssl_module", ClientVariables::<StreamSession>::TABLE);

    /// Installs nothing: the settings of this subsystem include them.
    pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
        Ok(())
    }
}

conf::directives! {
    in MAIN | SERVER;

    /// How long a client may take for the handshake.
    ///
    /// ```nginx
    /// ssl_handshake_timeout 10s;
    /// ```
    handshake_timeout: Milliseconds = "60s",
    /// The application protocols that the server speaks (ALPN), best first. A client that offers
    /// none of them is turned away.
    ///
    /// Syntax: PROTOCOL...
    ///
    /// ```nginx
    /// ssl_alpn h2 http/1.1;
    /// ```
    alpn: Option<AlpnProtocols>,
}

pub(crate) const VARIABLES: VariableTable<StreamSession> =
    VariableTable::new("ngx_stream_ssl_module", TlsVariables::<StreamSession>::TABLE);

/// The most bytes of plaintext in a record. nginx has no setting for it in `stream {}`.
const RECORD_MAX: usize = 16 * 1024;

/// Passes the settings to the server.
pub fn install(
    conf: &Arc<Conf>,
    shared: &Arc<shared::Conf>,
    place: &mut ServerBuilder<'_, '_>,
) -> Result<()> {
    let parts = ServerTlsParts {
        record_max: RECORD_MAX,
        protocols: conf.alpn.clone().map_or_else(Vec::new, |names| names.0),
        identity: std::mem::take(&mut place.identity),
        early_data_max: 0,
        names: place.server.names.clone(),
        slot: place.server.tls.slot.clone(),
    };
    let tls = shared.server_tls(parts, place.load)?;
    place.server.tls = StreamTls {
        clients: shared.client_verification(tls.is_some(), place.load)?,
        tls: tls.map(Arc::new),
        slot: place.server.tls.slot.take(),
        rejects_handshakes: shared.rejects_handshakes(),
        handshake_timeout_ms: conf.handshake_timeout.0,
    };
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlpnProtocols(Vec<Box<[u8]>>);

impl Value for AlpnProtocols {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        if let Some(word) = from.args.iter().find(|word| word.text.len() > 255) {
            return Err(from.error_at(word, "protocol too long"));
        }
        Ok(Self(from.args.iter().map(|word| word.text.clone()).collect()))
    }
}
