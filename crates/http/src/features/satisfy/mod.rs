//! `satisfy` and `auth_delay`: how the answers of several access checks become one.
//!
//! The asking itself is the access phase, in `phases`.

use std::sync::Arc;

use conf::{Milliseconds, Result};

use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether all access checks must be passed, or any of them is enough.
    satisfy: Satisfy = "all",
    /// How long an answer of 401 is held back.
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

/// Tells the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.satisfy_any = conf.satisfy == Satisfy::Any;
    place.core.auth_delay_ms = conf.auth_delay.0;
    Ok(())
}

#[cfg(test)]
mod tests;
