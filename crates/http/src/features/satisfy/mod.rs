//! `satisfy` and `auth_delay`: how the results of several access checks are combined.
//!
//! `phases` runs the checks.

use std::sync::Arc;

use conf::{Milliseconds, Result};

use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether access requires all of `allow`/`deny`, `auth_basic` and `auth_request`, or any of
    /// them.
    ///
    /// ```nginx
    /// satisfy any;
    /// allow 10.0.0.0/8;
    /// deny all;
    /// auth_basic "Staff";
    /// auth_basic_user_file htpasswd;
    /// ```
    satisfy: Satisfy = "all",
    /// Delays responses with 401, to slow down password guessing.
    auth_delay: Milliseconds = "0",
}

conf::words! {
    /// How many checks must be passed.
    pub enum Satisfy {
        /// All.
        All = "all",
        /// One.
        Any = "any",
    }
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.satisfy_any = conf.satisfy == Satisfy::Any;
    location.core.auth_delay_ms = conf.auth_delay.0;
    Ok(())
}

#[cfg(test)]
mod tests;
