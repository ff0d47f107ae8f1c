//! `lingering_close`: reading what the client still sends after its connection was closed.

use std::sync::Arc;

use conf::{Milliseconds, Result};

use crate::site::LocationBuilder;
use crate::site::policy::{Close, Lingering};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether the server continues to read for a while before it closes a connection on which the
    /// client is still sending, so that the client receives the whole response. `always` does so
    /// even if no more data is expected.
    ///
    /// ```nginx
    /// lingering_close off;
    /// ```
    lingering_close: Close = "on",
    /// How long the server continues to read in total.
    lingering_time: Milliseconds = "30s",
    /// How long the server waits for more data.
    ///
    /// ```nginx
    /// lingering_timeout 2s;
    /// ```
    lingering_timeout: Milliseconds = "5s",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.lingering = Lingering {
        close: conf.lingering_close,
        time_ms: conf.lingering_time.0,
        timeout_ms: conf.lingering_timeout.0,
    };
    Ok(())
}
