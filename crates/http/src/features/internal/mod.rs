//! `internal`: a location that only internal redirects and subrequests reach.

use std::sync::Arc;

use conf::{Present, Result};

use crate::site::LocationBuilder;

conf::directives! {
    in LOCATION;

    /// Answers client requests with 404. Only internal redirects can reach the location:
    /// `error_page`, `try_files`, `rewrite`, `X-Accel-Redirect`, subrequests.
    ///
    /// ```nginx
    /// location /protected/ {
    ///     internal;
    ///     root /srv;
    /// }
    /// ```
    internal: Option<Present>,
}

/// Passes the setting to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.internal = conf.internal.is_some();
    Ok(())
}
