//! The settings of TLS with backends (`session::tls::client`), which each family mounts under its
//! own prefix.

use std::sync::Arc;

use ::session::tls::client::{self, BackendTls};
use conf::Result;

use crate::site::LocationBuilder;

pub use ::session::tls::client::{Conf, Layer};

/// The settings do nothing by themselves: the feature of the family takes them.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

/// What the settings come to in a location whose backends speak TLS.
pub(crate) fn compile(
    conf: &Arc<Conf>,
    prefix: &str,
    location: &mut LocationBuilder<'_, '_>,
) -> Result<Arc<BackendTls>> {
    client::backend_tls(conf, prefix, location.at, location.load)
}
