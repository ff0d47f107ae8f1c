//! `error_log` of the main level: the log of messages without a server, which servers inherit.

use std::sync::Arc;

use conf::Result;
use observe::{ErrorLog, MainLogTags};

use super::ProgramSettings;

conf::directives! {
    in MAIN;
    /// Where messages are logged, and from which level on. Several lines write to several places.
    /// The levels are `debug`, `info`, `notice`, `warn`, `error`, `crit`, `alert`, `emerg`; without
    /// one, `error`.
    /// - `json`: each line is an object in JSON (docs/logs.md)
    ///
    /// Syntax: FILE | stderr | syslog:server=ADDRESS[,...] [LEVEL] [json]
    /// Default: the installation's error.log at error
    /// Differs: `memory:` is rejected. Called weir by a user who is not root, the default is
    /// stderr.
    ///
    /// ```nginx
    /// error_log /var/log/weir/error.log warn;
    /// ```
    error_log: Option<ErrorLog>,
    /// A field that lines of error logs in JSON have in addition. It can be repeated. Blocks
    /// without tags of their own inherit it.
    ///
    /// Differs: not in nginx's sources; as in NGINX Plus R37.
    ///
    /// ```nginx
    /// error_log /var/log/weir/error.json warn json;
    /// error_log_tag machine web1;
    /// ```
    error_log_tag: Option<MainLogTags>,
}

/// Passes the log and its tags to the program.
pub(crate) fn install(conf: &Arc<Conf>, settings: &mut ProgramSettings) -> Result<()> {
    settings.error_log.clone_from(&conf.error_log);
    settings.error_log_tags.clone_from(&conf.error_log_tag);
    Ok(())
}
