//! The places that error logs write to: standard error, files, syslog servers.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::write_once;
use crate::lost::lose_line;
use crate::{Level, LogFile, Stamps, SyslogSender};

pub(super) enum LogDestination {
    Stderr,
    File {
        file: Arc<LogFile>,
        /// The second in which the disk was full: no write is tried until the next one.
        full_second: AtomicI64,
    },
    Syslog(Mutex<SyslogSender>),
}

impl LogDestination {
    pub(super) fn file(file: Arc<LogFile>) -> Self {
        Self::File { file, full_second: AtomicI64::new(-1) }
    }

    pub(super) fn write(&self, level: Level, line: &[u8]) {
        match self {
            Self::Stderr => {
                if io::stderr().write_all(line).is_err() {
                    lose_line();
                }
            }
            Self::File { file, full_second } => {
                if to_file(file, full_second, line).is_none() {
                    lose_line();
                }
            }
            Self::Syslog(sender) => to_syslog(sender, level, line),
        }
    }
}

/// Writes a text to standard error. Unlike `eprint!` it does not panic if that fails.
pub fn tell(text: fmt::Arguments<'_>) {
    to_stderr(text.to_string().as_bytes());
}

pub(super) fn to_stderr(line: &[u8]) {
    // A failure cannot be reported anywhere.
    let _ = io::stderr().write_all(line);
}

/// `None`: the line is lost.
fn to_file(file: &LogFile, full_second: &AtomicI64, line: &[u8]) -> Option<()> {
    let file = file.current()?;
    let second = Stamps::now().second();
    if full_second.load(Ordering::Relaxed) == second {
        return None;
    }
    match write_once(&file, line) {
        Ok(written) => (written == line.len()).then_some(()),
        Err(error) => {
            if error.kind() == io::ErrorKind::StorageFull {
                full_second.store(second, Ordering::Relaxed);
            }
            None
        }
    }
}

thread_local! {
    /// Set while sending: a failure is logged to the main log, which may itself send, and fail.
    static SENDING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn to_syslog(sender: &Mutex<SyslogSender>, level: Level, line: &[u8]) {
    if SENDING.replace(true) {
        return;
    }
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    let mut message = Vec::with_capacity(line.len() + 128);
    sender.target().write_head(level.severity(), &mut message);
    message.extend_from_slice(line);
    if let Err(failed) = sender.send(&message) {
        failed.tell(sender.target());
    }
    SENDING.set(false);
}
