//! The access log: a line per session (`session::log`). A server without a log has no logger.

use std::sync::Arc;

use ::session::log::{self, AccessLogs, JsonColumn, LogFileCache, LogVariable, LoggedSession};
use conf::Result;

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    declare {
        /// Names a format of access log lines, made of text and variables. `escape=json` and
        /// `escape=none` choose how characters of variables are escaped. `json` is built in
        /// (docs/logs.md); a configuration can define a `json` of its own.
        ///
        /// Syntax: NAME [escape=default | escape=json | escape=none] STRING...
        ///
        /// ```nginx
        /// log_format basic '$remote_addr [$time_local] $status $bytes_sent $session_time';
        /// ```
        log_format(2..=usize::MAX) in MAIN => log::declare_format::<StreamSession>;
    }

    in MAIN | SERVER;

    /// Where sessions are logged, in which format, and on which condition. Several lines log to
    /// several places. With `buffer=` lines are written in bulk, at least every `flush=`; with
    /// `gzip` compressed. A path may contain variables.
    /// - `if=STRING`: the session is logged unless this is empty or `0`
    ///
    /// Syntax: PATH | syslog:server=ADDRESS[,...] FORMAT [buffer=SIZE] [gzip[=LEVEL]] [flush=TIME]
    /// [if=STRING]
    /// Syntax: off
    ///
    /// ```nginx
    /// log_format basic '$remote_addr $status';
    /// access_log /var/log/weir/stream.log basic buffer=64k flush=5s;
    /// ```
    access_log: Option<AccessLogs<StreamSession>>,
    /// Keeps log files open whose names contain variables.
    ///
    /// Syntax: max=NUMBER [inactive=TIME] [min_uses=NUMBER] [valid=TIME]
    /// Syntax: off
    ///
    /// ```nginx
    /// open_log_file_cache max=100 inactive=20s valid=1m min_uses=2;
    /// ```
    open_log_file_cache: LogFileCache = "off",
}

/// Adds the logger of the server, if it has any log.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let Some(logs) = &conf.access_log else { return Ok(()) };
    let logs = logs.logs(place.load);
    if !logs.is_empty() {
        let cache = conf.open_log_file_cache.clone();
        let write = move |x: &mut StreamSession| logs.iter().for_each(|l| log::write(l, &cache, x));
        place.server.loggers.push(Box::new(write));
    }
    Ok(())
}

const JSON: &[JsonColumn] = &[
    JsonColumn::text("client", "remote_addr"),
    JsonColumn::text("protocol", "protocol"),
    JsonColumn::number("server_port", "server_port"),
    JsonColumn::number("status", "status"),
    JsonColumn::number("bytes_received", "bytes_received"),
    JsonColumn::number("bytes_sent", "bytes_sent"),
    JsonColumn::number("session_time", "session_time"),
    JsonColumn::text("upstream_addr", "upstream_addr"),
    JsonColumn::number("upstream_bytes_received", "upstream_bytes_received"),
    JsonColumn::number("upstream_bytes_sent", "upstream_bytes_sent"),
    JsonColumn::number("upstream_connect_time", "upstream_connect_time"),
    JsonColumn::number("upstream_first_byte_time", "upstream_first_byte_time"),
    JsonColumn::number("upstream_session_time", "upstream_session_time"),
    JsonColumn::text("tls_protocol", "ssl_protocol"),
];

impl LoggedSession for StreamSession {
    const OWN: &'static [(&'static [u8], LogVariable<Self>)] = &[];
    const COMBINED: Option<&'static str> = None;
    const JSON: &'static [JsonColumn] = JSON;
}
