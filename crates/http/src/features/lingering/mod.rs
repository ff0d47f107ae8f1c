//! What becomes of what the client is still sending when its connection is closed.

use std::sync::Arc;

use conf::{Milliseconds, Result};

use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether the server reads on for a while before it closes a connection on which the client
    /// still sends, so that the client receives the whole response. `always` does so even if
    /// nothing more is expected.
    ///
    /// ```nginx
    /// lingering_close off;
    /// ```
    lingering_close: Close = "on",
    /// How long the server reads on in all.
    lingering_time: Milliseconds = "30s",
    /// How long the server waits for more to read.
    ///
    /// ```nginx
    /// lingering_timeout 2s;
    /// ```
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
