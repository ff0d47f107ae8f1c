//! Settings of every location that belong to no other feature: server tokens, early hints.

use std::sync::Arc;

use conf::{Predicates, Result};

use crate::site::LocationBuilder;
use crate::site::policy::ServerTokens;

conf::directives! {
    in MAIN | SERVER | LOCATION;

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
    location.core.server_tokens = conf.server_tokens;
    location.core.early_hints = conf.early_hints.clone();
    Ok(())
}
