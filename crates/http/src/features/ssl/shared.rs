//! The settings of TLS that `stream {}` has as well (`tls`).

use std::sync::Arc;

use ::tls::client_variables::ClientVariables;
pub use ::tls::{Conf, Layer};
use conf::Result;

use crate::exchange::Exchange;
use crate::site::LocationBuilder;
use crate::variables::VariableTable;

pub(crate) const VARIABLES: VariableTable =
    VariableTable::new("ngx_http_ssl_module", ClientVariables::<Exchange>::TABLE);

pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}
