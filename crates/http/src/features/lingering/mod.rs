//! What becomes of what the client is still sending when its connection is closed.

use std::sync::Arc;

use conf::{Milliseconds, Result};

use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether a connection that is closed is read on, so that the client gets the whole reply.
    lingering_close: Close = "on",
    /// How long it is read on.
    lingering_time: Milliseconds = "30s",
    /// How long it is waited for more to read.
    lingering_timeout: Milliseconds = "5s",
}

conf::words! {
    /// When to linger.
    #[derive(Default)]
    pub enum Close {
        /// Never.
        Off = "off",
        /// Where the client may be sending still.
        #[default]
        On = "on",
        /// Always.
        Always = "always",
    }
}

/// What the driver asks about lingering.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lingering {
    /// When.
    pub close: Close,
    /// How long in all.
    pub time_ms: u64,
    /// How long without a byte.
    pub timeout_ms: u64,
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.lingering = Lingering {
        close: conf.lingering_close,
        time_ms: conf.lingering_time.0,
        timeout_ms: conf.lingering_timeout.0,
    };
    Ok(())
}
