//! Settings for the URLs of redirects.

use std::sync::Arc;

use conf::Result;

use crate::site::LocationBuilder;
use crate::site::policy::RedirectPolicy;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether redirects of the server itself contain scheme, host and port.
    ///
    /// ```nginx
    /// absolute_redirect off;
    /// ```
    absolute_redirect: bool = "on",
    /// Whether absolute redirects contain the first `server_name` instead of the name in the
    /// request.
    ///
    /// ```nginx
    /// server_name_in_redirect on;
    /// ```
    server_name_in_redirect: bool = "off",
    /// Whether absolute redirects contain the port.
    ///
    /// ```nginx
    /// port_in_redirect off;
    /// ```
    port_in_redirect: bool = "on",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.redirect = RedirectPolicy {
        absolute: conf.absolute_redirect,
        server_name: conf.server_name_in_redirect,
        port: conf.port_in_redirect,
    };
    Ok(())
}
