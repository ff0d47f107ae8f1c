//! The access log: a line per request, to files, to syslog, to files named by variables.
//!
//! A location that logs nothing has no logger. Lines are made in the worker's own buffer for their
//! file and written at the end of its turn (see `observe`), so a request waits for no disk and for
//! no other worker.

mod access_log;
mod cache;
mod escape;
mod format;
mod path;

use std::sync::{Arc, Weak};
use std::time::Duration;

use conf::Result;
use observe::{Level, LogFile, LogFiles};

use access_log::{AccessLog, AccessLogs, Destination};
use cache::LogFileCache;
pub(crate) use cache::forget_old;
use format::Formats;

use crate::exchange::Exchange;
use crate::places::Places;
use crate::site::Place;

conf::directives! {
    declare {
        /// Defines a format for access log lines, consisting of text and variables. `escape=json`
        /// and `escape=none` select how characters of variables are escaped. `combined` is built
        /// in.
        ///
        /// Syntax: NAME [escape=default | escape=json | escape=none] STRING...
        /// Default: combined "$remote_addr - $remote_user [$time_local] ..."
        ///
        /// ```nginx
        /// log_format timed '$remote_addr "$request" $status $request_time';
        /// ```
        log_format(2..=usize::MAX) in MAIN => format::declare;
    }

    in MAIN | SERVER | LOCATION;

    /// Where requests are logged, in which format, and under which condition. Several `access_log`
    /// lines write to several places. With `buffer=`, lines are written in bulk, at least every
    /// `flush=`; with `gzip`, they are compressed. The path can contain variables.
    /// - `if=STRING`: the request is logged unless this is empty or `0`
    ///
    /// Syntax: PATH | syslog:server=ADDRESS[,...] [FORMAT] [buffer=SIZE] [gzip[=LEVEL]]
    /// [flush=TIME] [if=STRING]
    /// Syntax: off
    /// Default: the installation's access.log in combined
    /// Differs: called weir by a user who is not root, the default is off.
    ///
    /// ```nginx
    /// access_log /var/log/weir/access.log combined buffer=64k flush=5s;
    /// ```
    access_log + IF_IN_LOCATION + LIMIT_EXCEPT: Option<AccessLogs>,
    /// Caches open log files whose names contain variables.
    ///
    /// Syntax: max=NUMBER [inactive=TIME] [min_uses=NUMBER] [valid=TIME]
    /// Syntax: off
    ///
    /// ```nginx
    /// open_log_file_cache max=100 inactive=20s valid=1m min_uses=2;
    /// ```
    open_log_file_cache: LogFileCache = "off",
}

/// Has the location's requests logged.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    let logs = match &conf.access_log {
        Some(said) => said.logs(),
        None => default_log(place).into_iter().collect(),
    };
    if !logs.is_empty() {
        let cache = conf.open_log_file_cache.clone();
        place.logger(move |x| logs.iter().for_each(|log| write(log, &cache, x)));
    }
    Ok(())
}

fn default_log(place: &mut Place<'_, '_>) -> Option<Arc<AccessLog>> {
    let path = place.load.registry.of::<Places>().access_log.clone()?;
    let path = place.load.prefix.join(path);
    let file = place.load.registry.of::<LogFiles>().at(&path);
    let format = Formats::combined(place.load);
    Some(Arc::new(AccessLog { destination: Destination::File(file), format, condition: None }))
}

fn write(log: &AccessLog, cache: &LogFileCache, x: &mut Exchange) {
    if !log.wants(x) {
        return;
    }
    match &log.destination {
        Destination::File(file) => {
            if let Some(flush_ms) = observe::append(file, |out| log.format.write(x, out)) {
                flush_later(Arc::downgrade(file), flush_ms);
            }
        }
        Destination::Syslog(target) => {
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
        Destination::Path(path) => path.write(x, cache, |x, out| {
            log.format.write(x, out);
            out.push(b'\n');
        }),
    }
}

/// Flushes then, unless that was done since because the configuration is gone.
fn flush_later(file: Weak<LogFile>, flush_ms: u64) {
    net::spawn(async move {
        net::sleep(Duration::from_millis(flush_ms)).await;
        if let Some(file) = file.upgrade() {
            observe::flush(&file);
        }
    });
}

#[cfg(test)]
mod tests;
