//! Settings of locations for subrequests and `post_action`.
//!
//! `crate::subrequest` runs them.

use std::sync::Arc;

use conf::{Result, Size, Text};

use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether subrequests are logged in the access log.
    ///
    /// ```nginx
    /// log_subrequest on;
    /// ```
    log_subrequest: bool = "off",
    /// The largest response of a subrequest that is buffered as a whole.
    ///
    /// Differs: no effect: nothing here needs a whole response.
    subrequest_output_buffer_size: Size = "4k",
    /// A path or a `@name` that gets a subrequest after the response has been sent.
    ///
    /// Syntax: PATH | @NAME
    post_action + IF_IN_LOCATION: Option<Text>,
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.log_subrequest = conf.log_subrequest;
    location.core.post_action = conf.post_action.as_ref().map(|Text(target)| (&**target).into());
    Ok(())
}
