//! The access log: a line per request (`session::log`). A location without a log has no logger.

use std::io;
use std::sync::Arc;

use conf::{Result, bytes_path};
use observe::{Errno, Level, Text};
use session::builtin::now;
use session::decimal;
use session::log::{
    self, AccessLog, AccessLogs, JsonColumn, LogFileCache, LogVariable, LoggedSession,
};

use crate::exchange::Exchange;
use crate::places::Places;
use crate::site::LocationBuilder;

/// Linux's error number for a path that is not a directory.
const ENOTDIR: i32 = 20;

conf::directives! {
    declare {
        /// Defines a format for access log lines, consisting of text and variables. `escape=json`
        /// and `escape=none` select how characters of variables are escaped. `combined` and `json`
        /// are built in (docs/logs.md); a configuration can define a `json` of its own.
        ///
        /// Syntax: NAME [escape=default | escape=json | escape=none] STRING...
        /// Default: combined "$remote_addr - $remote_user [$time_local] ..."
        ///
        /// ```nginx
        /// log_format timed '$remote_addr "$request" $status $request_time';
        /// ```
        log_format(2..=usize::MAX) in MAIN => log::declare_format::<Exchange>;
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
    access_log + IF_IN_LOCATION + LIMIT_EXCEPT: Option<AccessLogs<Exchange>>,
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

/// Adds the logger of the location, if it has any log.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let logs = match &conf.access_log {
        Some(log) => log.logs(location.load),
        None => default_log(location).into_iter().collect(),
    };
    if !logs.is_empty() {
        let cache = conf.open_log_file_cache.clone();
        location.logger(move |x| logs.iter().for_each(|log| log::write(log, &cache, x)));
    }
    Ok(())
}

fn default_log(location: &mut LocationBuilder<'_, '_>) -> Option<AccessLog<Exchange>> {
    let path = location.load.registry.of::<Places>().access_log.clone()?;
    let path = location.load.prefix.join(path);
    AccessLog::by_default(&path, location.load)
}

const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" \
    $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

const JSON: &[JsonColumn] = &[
    JsonColumn::text("client", "remote_addr"),
    JsonColumn::text("user", "remote_user"),
    JsonColumn::text("method", "request_method"),
    JsonColumn::text("uri", "request_uri"),
    JsonColumn::text("protocol", "server_protocol"),
    JsonColumn::number("status", "status"),
    JsonColumn::number("bytes_received", "request_length"),
    JsonColumn::number("bytes_sent", "bytes_sent"),
    JsonColumn::number("request_time", "request_time"),
    JsonColumn::text("host", "host"),
    JsonColumn::text("referer", "http_referer"),
    JsonColumn::text("user_agent", "http_user_agent"),
    JsonColumn::text("request_id", "request_id"),
    JsonColumn::text("upstream_addr", "upstream_addr"),
    JsonColumn::number("upstream_status", "upstream_status"),
    JsonColumn::number("upstream_connect_time", "upstream_connect_time"),
    JsonColumn::number("upstream_header_time", "upstream_header_time"),
    JsonColumn::number("upstream_response_time", "upstream_response_time"),
    JsonColumn::text("tls_protocol", "ssl_protocol"),
];

impl LoggedSession for Exchange {
    const OWN: &'static [(&'static [u8], LogVariable<Self>)] = &[
        (b"pipe", |x, out| out.push(if x.request.pipelined { b'p' } else { b'.' })),
        (b"time_local", |_, out| out.extend_from_slice(&now().log)),
        (b"time_iso8601", |_, out| out.extend_from_slice(&now().iso8601)),
        (b"msec", |_, out| decimal::write_seconds(net::clock::unix_ms(), out)),
        (b"request_time", |x, out| decimal::write_seconds(x.age_ms(), out)),
        (b"status", |x, out| decimal::write_three(x.status().into(), out)),
        (b"bytes_sent", |x, out| decimal::write(x.reply.bytes_sent, out)),
        (b"body_bytes_sent", |x, out| decimal::write(x.reply.body_bytes_sent(), out)),
        (b"request_length", |x, out| decimal::write(x.request_length(), out)),
        // Its quotes are not escaped, so that it can be a part of a line in JSON.
        (b"request_timing", |x, out| x.write_timing(out)),
    ];
    const COMBINED: Option<&'static str> = Some(COMBINED);
    const JSON: &'static [JsonColumn] = JSON;

    /// Logs with variables are not written if the location's root does not exist.
    fn admits_log_paths(&mut self) -> bool {
        root_exists(self)
    }
}

fn root_exists(x: &mut Exchange) -> bool {
    let mut root = x.scratch();
    x.append_document_root(&mut root);
    let found = std::fs::metadata(bytes_path(&root));
    let error = match found {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(io::Error::from_raw_os_error(ENOTDIR)),
        Err(error) => Some(error),
    };
    if let Some(error) = &error {
        let (path, reason) = (Text(&root), Errno(error));
        x.log(Level::Error, format_args!("testing \"{path}\" existence failed{reason}"));
    }
    x.give_scratch(root);
    error.is_none()
}

#[cfg(test)]
mod tests;
