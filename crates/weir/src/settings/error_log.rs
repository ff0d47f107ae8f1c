//! `error_log` of the main level, until crate `observe` reads it.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value};

use super::Settings;
use crate::log::Level;

conf::directives! {
    in MAIN;
    /// Where messages go, and from which level on.
    error_log: Vec<ErrorLog>,
}

/// One log: its file (`None`: the standard error) and level.
#[derive(Clone)]
pub struct ErrorLog(Option<PathBuf>, Level);

impl Value for ErrorLog {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let target = &from.arg(0).text;
        let path = (&**target != b"stderr").then(|| load.path(target));
        let mut level = None;
        for word in &from.args[1..] {
            let found = Level::of(&word.text)
                .ok_or_else(|| from.error_at(word, format!("invalid log level \"{word}\"")))?;
            if level.replace(found).is_some() {
                return Err(from.error_at(word, format!("duplicate log level \"{word}\"")));
            }
        }
        Ok(Self(path, level.unwrap_or(Level::Error)))
    }
}

/// Hands the logs to the program.
pub fn install(conf: &Arc<Conf>, settings: &mut Settings) -> Result<()> {
    settings.error_logs = conf.error_log.iter().map(|log| (log.0.clone(), log.1)).collect();
    Ok(())
}
