//! `limit_conn`: limits the number of open connections with the same key (`session::limit_conn`).

use std::sync::Arc;

use ::session::keyed::LogLevel;
use ::session::limit_conn::{self, ConnLimit, ConnLimited, ConnLimiter, ConnLimits};
use ::session::variables::{BuiltIn, VariableTable, some};
use conf::Result;

use crate::session::StreamSession;
use crate::site::{Decision, ServerBuilder};

conf::directives! {
    declare {
        /// Defines a zone that counts connections by a key. Connections with an empty key are not
        /// counted.
        ///
        /// Syntax: STRING zone=NAME:SIZE
        ///
        /// ```nginx
        /// limit_conn_zone $binary_remote_addr zone=clients:10m;
        ///
        /// server {
        ///     listen 127.0.0.1:9000;
        ///     limit_conn clients 20;
        /// }
        /// ```
        limit_conn_zone(2..=2) in MAIN => limit_conn::declare;
    }

    in MAIN | SERVER;

    /// The largest number of open connections with the same key. Others are closed. Of
    /// `NUMBER/nodes`, each node enforces its part (see `nodes`).
    ///
    /// Syntax: ZONE NUMBER[/nodes]
    /// Differs: only Weir has `/nodes`.
    ///
    /// ```nginx
    /// limit_conn_zone $binary_remote_addr zone=clients:10m;
    /// limit_conn clients 2;
    /// ```
    limit_conn: Option<ConnLimits>,
    /// The level at which rejected connections are logged.
    limit_conn_log_level: LogLevel = "error",
    /// Whether connections are counted and logged, but not rejected.
    limit_conn_dry_run: bool = "off",
}

pub(crate) const VARIABLES: VariableTable<StreamSession> = VariableTable::new(
    "ngx_stream_limit_conn_module",
    &[BuiltIn::fresh(
        "limit_conn_status",
        "What `limit_conn` did: `PASSED`, `REJECTED` or `REJECTED_DRY_RUN`.",
        |x, out| x.limited.said.is_some_and(|said| some(out, said.as_bytes())),
    )],
);

/// The status of a session that is rejected.
const SERVICE_UNAVAILABLE: u16 = 503;

/// Adds the limits, which are checked before access.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let Some(limits) = &conf.limit_conn else { return Ok(()) };
    let (level, dry_run) = (conf.limit_conn_log_level, conf.limit_conn_dry_run);
    let limiter = ConnLimiter::new(limits, level, dry_run, place.load);
    place.server.preaccess.push(place.hook(Box::new(move |x| match limiter.admit(x) {
        true => Decision::Next,
        false => Decision::Finish(SERVICE_UNAVAILABLE),
    })));
    Ok(())
}

impl ConnLimit for StreamSession {
    fn limited(&mut self) -> &mut ConnLimited {
        &mut self.limited
    }
}
