//! The settings of TLS that `stream {}` has, too (`session::tls`).

use std::sync::Arc;

use conf::Result;

pub use ::session::tls::{Conf, Layer};

use crate::site::LocationBuilder;

/// Nothing hooks into a location.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}
