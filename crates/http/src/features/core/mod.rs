//! Settings of every location that belong to no other feature: error log, server tokens, early
//! hints.

use std::sync::Arc;

use conf::{Predicates, Result};
use observe::{ErrorLog, MainLog};

use crate::site::LocationBuilder;
use crate::site::policy::ServerTokens;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Where errors of requests are logged, and from which level on. It replaces the main
    /// `error_log` here.
    ///
    /// Syntax: FILE | stderr | syslog:server=ADDRESS[,...] [LEVEL]
    /// Default: that of the block around
    ///
    /// ```nginx
    /// server {
    ///     error_log /var/log/weir/example.com.log;
    /// }
    /// ```
    error_log: Option<ErrorLog>,
    /// What the field `Server` and error pages contain: the name and version (`on`), only the name
    /// (`off`), or also the name of the build (`build`).
    ///
    /// Differs: the name is Weir's own unless the program is called `nginx`.
    ///
    /// ```nginx
    /// server_tokens off;
    /// ```
    server_tokens: ServerTokens = "on",
    /// Passes 103 responses of a backend on to the client if one of these values is neither empty
    /// nor `0`.
    early_hints: Option<Predicates>,
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.error_log = match &conf.error_log {
        Some(log) => Arc::new(log.clone()),
        None => location.load.registry.of::<MainLog>().0.clone(),
    };
    location.core.server_tokens = conf.server_tokens;
    location.core.early_hints = conf.early_hints.clone();
    Ok(())
}
