//! `error_log` and `error_log_tag` of a location.
//!
//! Tags with variables are rendered once for a request, before the first check that may log about
//! it. Locations without such tags, or without a log in JSON, have no handler for that.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use observe::{ErrorLog, ErrorLogTags};

use crate::exchange::{Exchange, Flow, LogTags};
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Where errors of requests are logged, and from which level on. It replaces the main
    /// `error_log` here.
    /// - `json`: each line is an object in JSON (docs/logs.md)
    ///
    /// Syntax: FILE | stderr | syslog:server=ADDRESS[,...] [LEVEL] [json]
    /// Default: that of the block around
    ///
    /// ```nginx
    /// server {
    ///     error_log /var/log/weir/example.com.log;
    /// }
    /// ```
    error_log: Option<ErrorLog>,
    /// A field that lines of error logs in JSON have in addition. It can be repeated. A block with
    /// tags of its own does not inherit others. The value of a variable is taken once, after
    /// `rewrite` and before access is checked; messages before that are without tags that have
    /// variables.
    ///
    /// Differs: not in nginx's sources; as in NGINX Plus R37.
    ///
    /// ```nginx
    /// error_log /var/log/weir/error.json error json;
    /// error_log_tag site shop;
    /// error_log_tag request_id $request_id;
    /// ```
    error_log_tag: Option<ErrorLogTags>,
}

/// Passes the log to the core, and adds a handler if there are tags with variables.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let (log, tags) = (conf.error_log.as_ref(), conf.error_log_tag.as_ref());
    location.core.error_log = ErrorLog::of_block(log, tags, location.load);
    if let Some(tags) = tags.filter(|tags| tags.have_variables())
        && location.core.error_log.has_json()
    {
        let tags = tags.clone();
        location.preaccess(move |x| render(&tags, x));
    }
    Ok(())
}

fn render(tags: &ErrorLogTags, x: &mut Exchange) -> Flow {
    if !x.is_subrequest() {
        let mut text = std::mem::take(&mut x.states.of::<LogTags>().0);
        tags.render(x, &mut text);
        x.states.of::<LogTags>().0 = text;
    }
    Flow::Next
}
