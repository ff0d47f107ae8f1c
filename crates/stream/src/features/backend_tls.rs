//! The settings of TLS with backends (`::tls::client`), as `proxy_ssl_`.

use std::sync::Arc;

use conf::Result;

use crate::site::ServerBuilder;

pub use ::tls::client::{Conf, Layer};

/// Installs nothing: `proxy` reads these settings.
pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
    Ok(())
}
