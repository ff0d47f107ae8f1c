//! `error_log` and `error_log_tag` of a server. Servers without tags that have variables, or
//! without a log in JSON, have no handler.

use std::sync::Arc;

use conf::Result;
use observe::{ErrorLog, ErrorLogTags};

use crate::session::StreamSession;
use crate::site::{Decision, ServerBuilder};

conf::directives! {
    in MAIN | SERVER;

    /// Where errors of sessions are logged, and from which level on. It replaces the main
    /// `error_log` here.
    /// - `json`: each line is an object in JSON (docs/logs.md)
    ///
    /// Syntax: FILE | stderr | syslog:server=ADDRESS[,...] [LEVEL] [json]
    /// Default: that of the block around
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     error_log /var/log/weir/stream.log info;
    /// }
    /// ```
    error_log: Option<ErrorLog>,
    /// A field that lines of error logs in JSON have in addition. It can be repeated. A block with
    /// tags of its own does not inherit others. The value of a variable is taken once, after `set`
    /// and before access is checked; messages before that are without tags that have variables.
    ///
    /// Differs: not in nginx's sources; as in NGINX Plus R37.
    ///
    /// ```nginx
    /// error_log /var/log/weir/stream.json error json;
    /// error_log_tag service database;
    /// ```
    error_log_tag: Option<ErrorLogTags>,
}

/// Passes the log to the server, and adds a handler if there are tags with variables.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let (log, tags) = (conf.error_log.as_ref(), conf.error_log_tag.as_ref());
    place.server.error_log = ErrorLog::of_block(log, tags, place.load);
    if let Some(tags) = tags.filter(|tags| tags.have_variables())
        && place.server.error_log.has_json()
    {
        let tags = tags.clone();
        place.server.preaccess.push(place.hook(Box::new(move |x| render(&tags, x))));
    }
    Ok(())
}

fn render(tags: &ErrorLogTags, x: &mut StreamSession) -> Decision {
    let mut text = std::mem::take(&mut x.log_tags);
    tags.render(x, &mut text);
    x.log_tags = text;
    Decision::Next
}
