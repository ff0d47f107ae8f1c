//! `error_log` of the main level: the log of messages without a server, which servers inherit.

use std::sync::Arc;

use conf::Result;
use observe::ErrorLog;

use super::ProgramSettings;

conf::directives! {
    in MAIN;
    /// Where messages are logged, and from which level on. Several lines write to several places.
    /// The levels are `debug`, `info`, `notice`, `warn`, `error`, `crit`, `alert`, `emerg`; without
    /// one, `error`.
    ///
    /// Syntax: FILE | stderr | syslog:server=ADDRESS[,...] [LEVEL]
    /// Default: the installation's error.log at error
    /// Differs: `memory:` is rejected. Called weir by a user who is not root, the default is
    /// stderr.
    ///
    /// ```nginx
    /// error_log /var/log/weir/error.log warn;
    /// ```
    error_log: Option<ErrorLog>,
}

/// Passes the log to the program.
pub(crate) fn install(conf: &Arc<Conf>, settings: &mut ProgramSettings) -> Result<()> {
    settings.error_log.clone_from(&conf.error_log);
    Ok(())
}
