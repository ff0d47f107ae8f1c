//! The access log: one line per session, to files, to syslog, or to files named by variables.
//!
//! Lines are collected in the worker's own buffer for their file and written at the end of its turn
//! (see `observe`), so that a session waits neither for the disk nor for another worker.

mod access_log;
mod cache;
mod escape;
mod format;
mod json;
mod logged;
mod path;

use std::sync::{Arc, Weak};
use std::time::Duration;

use observe::{Level, LogFile};

use access_log::AccessLogFile;
pub use access_log::{AccessLog, AccessLogs};
pub use cache::{LogFileCache, forget_old};
pub use format::{declare as declare_format, formats_have};
pub use logged::{JsonColumn, LogVariable, LoggedSession};

/// Writes a session's line, unless the log's condition excludes it.
pub fn write<X: LoggedSession>(log: &AccessLog<X>, cache: &LogFileCache, x: &mut X) {
    if !log.wants(x) {
        return;
    }
    match &*log.destination {
        AccessLogFile::File(file) => {
            if let Some(flush_ms) = observe::append(file, |out| log.format.write(x, out)) {
                flush_later(Arc::downgrade(file), flush_ms);
            }
        }
        AccessLogFile::Syslog(target) => {
            match observe::send(target, |out| log.format.write(x, out)) {
                Ok((sent, length)) if sent < length => x.log(
                    Level::Warn,
                    format_args!("send() to syslog has written only {sent} of {length}"),
                ),
                Ok(_) => {}
                Err(failed) => {
                    failed.tell(target);
                    x.log(Level::Warn, format_args!("send() to syslog failed"));
                }
            }
        }
        AccessLogFile::Path(path) => path.write(x, cache, |x, out| {
            log.format.write(x, out);
            out.push(b'\n');
        }),
    }
}

/// Flushes the file after a while, unless it was closed in the meantime because its configuration
/// is gone.
fn flush_later(file: Weak<LogFile>, flush_ms: u64) {
    net::spawn(async move {
        net::sleep(Duration::from_millis(flush_ms)).await;
        if let Some(file) = file.upgrade() {
            observe::flush(&file);
        }
    });
}
