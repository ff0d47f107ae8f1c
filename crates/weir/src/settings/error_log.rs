//! `error_log` of the main level: where what belongs to no server goes, and what servers inherit.

use std::sync::Arc;

use conf::Result;
use observe::ErrorLog;

use super::Settings;

conf::directives! {
    in MAIN;
    /// Where messages go, and from which level on.
    error_log: Option<ErrorLog>,
}

/// Hands the log to the program.
pub(crate) fn install(conf: &Arc<Conf>, settings: &mut Settings) -> Result<()> {
    settings.error_log.clone_from(&conf.error_log);
    Ok(())
}
