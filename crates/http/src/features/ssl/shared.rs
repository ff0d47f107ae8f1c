//! The settings of TLS that `stream {}` has, too (`session::tls`).

use std::sync::Arc;

use ::session::tls::client_variables::ClientVariables;
pub use ::session::tls::{Conf, Layer};
use conf::Result;

use crate::exchange::Exchange;
use crate::site::LocationBuilder;
use crate::variables::BuiltIn;

/// `$ssl_client_cert` and the others.
pub(crate) const VARIABLES: &[BuiltIn] = ClientVariables::<Exchange>::TABLE;

/// Nothing hooks into a location.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}
