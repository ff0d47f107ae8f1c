//! `limit_conn`: limits the number of concurrent requests with the same key
//! (`session::limit_conn`).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::session::keyed::LogLevel;
use ::session::limit_conn::{self, ConnLimit, ConnLimited, ConnLimiter, ConnLimits};
use conf::{Bounded, Result};

use crate::exchange::{Exchange, FeatureState, Flow};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable, some};

conf::directives! {
    declare {
        /// Defines a zone that counts requests in progress by a key. Requests with an empty key are
        /// not counted.
        ///
        /// Syntax: STRING zone=NAME:SIZE
        ///
        /// ```nginx
        /// limit_conn_zone $binary_remote_addr zone=clients:10m;
        ///
        /// server {
        ///     limit_conn clients 20;
        /// }
        /// ```
        limit_conn_zone(2..=2) in MAIN => limit_conn::declare;
    }

    in MAIN | SERVER | LOCATION;

    /// The largest number of requests in progress with the same key. Of `NUMBER/nodes`, each node
    /// enforces its part (see `nodes`).
    ///
    /// Syntax: ZONE NUMBER[/nodes]
    /// Differs: only Weir has `/nodes`.
    ///
    /// ```nginx
    /// limit_conn_zone $binary_remote_addr zone=clients:10m;
    ///
    /// server {
    ///     location /download/ {
    ///         limit_conn clients 2;
    ///     }
    /// }
    /// ```
    limit_conn: Option<ConnLimits>,
    /// The level at which rejected requests are logged.
    limit_conn_log_level: LogLevel = "error",
    /// The status of rejected requests.
    ///
    /// ```nginx
    /// limit_conn_status 429;
    /// ```
    limit_conn_status: Bounded<400, 599> = "503",
    /// Whether requests are counted and logged, but not rejected.
    limit_conn_dry_run: bool = "off",
}

impl FeatureState for ConnLimited {
    fn clear(&mut self) {
        ConnLimited::clear(self);
    }

    /// A subrequest is not counted if its main request was, and the other way round.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.said = parent.said;
    }

    /// From the end of a subrequest on, its count belongs to the main request.
    fn end_subrequest(&mut self, subrequest: &mut Self) {
        self.take_over(subrequest);
    }
}

impl ConnLimit for Exchange {
    fn limited(&mut self) -> &mut ConnLimited {
        self.states.of::<ConnLimited>()
    }
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_limit_conn_module",
    &[BuiltIn::fresh(
        "limit_conn_status",
        "What `limit_conn` did: `PASSED`, `REJECTED` or `REJECTED_DRY_RUN`.",
        |x, out| {
            let said = x.states.find::<ConnLimited>().and_then(|limited| limited.said);
            said.is_some_and(|said| some(out, said.as_bytes()))
        },
    )],
);

/// Adds the limits, which are checked before access.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Some(limits) = &conf.limit_conn else { return Ok(()) };
    let (level, dry_run) = (conf.limit_conn_log_level, conf.limit_conn_dry_run);
    let limiter = ConnLimiter::new(limits, level, dry_run, location.load);
    let status = conf.limit_conn_status.0 as u16;
    location.preaccess(move |x| match limiter.admit(x) {
        true => Flow::Next,
        false => Flow::Status(status),
    });
    Ok(())
}
