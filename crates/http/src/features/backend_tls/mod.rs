//! The settings of TLS with backends (`tls::client`), which each family mounts under its
//! own prefix.

use std::sync::Arc;

use ::tls::client::{self, BackendTls};
use conf::Result;

use crate::site::LocationBuilder;

pub use ::tls::client::{Conf, Layer};

/// Installs nothing: the feature of each family reads these settings.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

/// Compiles the settings of a location whose backends use TLS.
pub(crate) fn compile(
    conf: &Arc<Conf>,
    prefix: &str,
    location: &mut LocationBuilder<'_, '_>,
) -> Result<Arc<BackendTls>> {
    client::backend_tls(conf, prefix, location.at, location.load)
}
