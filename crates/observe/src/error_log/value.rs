//! `error_log` as a directive, which is the same at every level of the configuration.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use conf::{Directive, Load, Result, Value};

use super::{ErrorLog, ErrorLogForm, LogDestination, Sink};
use crate::{LevelSet, LogFiles, SyslogSender, SyslogTarget};

impl Value for ErrorLog {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut log = Self::default();
        log.repeat(from, load)?;
        Ok(log)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let destination = Arc::new(destination(from, load)?);
        let (words, form) = match &from.args[1..] {
            [words @ .., last] if &*last.text == b"json" => (words, ErrorLogForm::Json),
            words => (words, ErrorLogForm::Text),
        };
        self.add(Sink { levels: LevelSet::parse(words, from)?, form, destination });
        Ok(())
    }
}

fn destination(from: &Directive, load: &mut Load<'_>) -> Result<LogDestination> {
    let word = from.arg(0);
    if let Some(target) = SyslogTarget::parse(word, from)? {
        return Ok(LogDestination::Syslog(Mutex::new(SyslogSender::new(Arc::new(target)))));
    }
    match &*word.text {
        b"stderr" | b"" => {
            load.registry.of::<LogFiles>().note_stderr();
            Ok(LogDestination::Stderr)
        }
        text if text.starts_with(b"memory:") => Err(from
            .error_at(word, "logs in memory are not supported by this version")
            .help("They are for debugging a running nginx; use a file.")),
        text => {
            let path = load.path(text);
            Ok(LogDestination::file(load.registry.of::<LogFiles>().named(&path, Some(word.span))))
        }
    }
}
