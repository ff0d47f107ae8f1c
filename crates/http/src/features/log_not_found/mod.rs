//! `log_not_found`: whether files that are not there are worth a line in the error log.

use std::sync::Arc;

use conf::Result;

use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether errors about files that are not found are logged.
    log_not_found: bool = "on",
}

/// Tells the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.log_not_found = conf.log_not_found;
    Ok(())
}
