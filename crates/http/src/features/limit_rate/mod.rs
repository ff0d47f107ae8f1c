//! `limit_rate`: the rate at which a reply is sent.

use std::sync::Arc;

use conf::{Result, SizeTemplate};

use crate::site::LocationBuilder;
use crate::site::policy::LimitRate;

conf::directives! {
    in MAIN | SERVER | LOCATION | IF_IN_LOCATION;

    /// Limits the rate at which a response is sent, in bytes per second. 0 means no limit.
    ///
    /// Default: 0
    ///
    /// ```nginx
    /// location /download/ {
    ///     limit_rate_after 10m;
    ///     limit_rate 500k;
    /// }
    /// ```
    limit_rate: Option<SizeTemplate>,
    /// How many bytes are sent before `limit_rate` applies.
    ///
    /// Default: 0
    limit_rate_after: Option<SizeTemplate>,
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.limit_rate =
        LimitRate { rate: conf.limit_rate.clone(), after: conf.limit_rate_after.clone() };
    Ok(())
}
