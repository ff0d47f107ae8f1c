//! `health_check` and `match`: active checks of the servers of a location's backend.
//!
//! The directives are parsed here; [`crate::health`] runs the checks.

mod parameters;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::session::health::is_named;
use conf::Result;

use crate::health::matching::{Matches, declare};
use crate::health::{Checkable, LocationCheck};
use crate::site::LocationBuilder;
use parameters::HealthCheckLine;

conf::directives! {
    declare {
        /// Defines a set of tests that the response to a health check must pass. Each line is one
        /// test; all of them must pass.
        /// - `status [!] CODE | CODE-CODE ...`: the status is one of these, or none of them
        /// - `header [!] FIELD`: the field is present, or absent
        /// - `header FIELD = | != | ~ | !~ VALUE`: the field's value, compared or matched
        /// - `body ~ | !~ REGEX`: the first 256 KB of the body match, or do not
        /// - `require $VARIABLE...`: none of these variables is empty or `0`
        ///
        /// Syntax: NAME
        /// Differs: not in nginx's sources; as in NGINX Plus. See docs/health.md.
        ///
        /// ```nginx
        /// match ready {
        ///     status 200;
        ///     header Content-Type ~ json;
        ///     body !~ maintenance;
        /// }
        /// ```
        match(1..=1) {} in MAIN => declare;
    }

    in LOCATION;

    /// Sends a request to every server of the group in `proxy_pass` periodically, and does not use
    /// servers that fail.
    /// - `interval=TIME`: the time between two checks; 5s
    /// - `jitter=TIME`: the largest random delay added to it; 0
    /// - `fails=NUMBER`, `passes=NUMBER`: consecutive failures or passes that change a server's
    ///   state; 1
    /// - `uri=PATH`: the path of the request; `/`
    /// - `match=NAME`: the tests of the response; without it, a status of 2xx or 3xx passes
    /// - `port=NUMBER`: the port to connect to; the server's own
    /// - `mandatory`: a server is not used until it has passed; `persistent` after it keeps the
    ///   state across reloads
    /// - `keepalive_time=TIME`: how long one connection is used for further checks; 0
    /// - `type=grpc`, after all of these and without `uri` and `match`: calls `Check` of
    ///   `grpc.health.v1.Health`, in a location with `grpc_pass`. `grpc_service=NAME` asks for a
    ///   service instead of the whole server. With `grpc_status=CODE`, a call that ends with this
    ///   status passes, too: 12 for servers without that service.
    ///
    /// Syntax: [interval=TIME] [jitter=TIME] [fails=NUMBER] [passes=NUMBER] [uri=PATH] [match=NAME]
    /// [port=NUMBER] [mandatory [persistent]] [keepalive_time=TIME]
    /// [type=grpc [grpc_service=NAME] [grpc_status=CODE]]
    /// Differs: not in nginx's sources; as in NGINX Plus, except that no `zone` is needed. See
    /// docs/health.md.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001 slow_start=30s;
    ///     server 127.0.0.1:8002;
    /// }
    ///
    /// server {
    ///     location / {
    ///         proxy_pass http://app;
    ///         health_check interval=2s fails=3 passes=2 uri=/health;
    ///     }
    /// }
    /// ```
    health_check: Option<HealthCheckLine>,
}

/// Passes the check to [`crate::health`], which finds it in the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let checkable = location.handed_on.of::<Option<Arc<dyn Checkable>>>().take();
    let Some(check) = &conf.health_check else { return Ok(()) };
    let backend = checkable
        .ok_or_else(|| check.parameters.refuse("requires \"proxy_pass\" in its location"))?;
    if check.grpc.is_some() && !backend.speaks_grpc() {
        let why = "with \"type=grpc\" requires \"grpc_pass\" in its location";
        return Err(check.parameters.refuse(why));
    }
    let group = backend.group().filter(|group| is_named(group, location.load));
    let group = group.ok_or_else(|| {
        check.parameters.refuse("requires a \"proxy_pass\" that names an upstream")
    })?;
    location.core.own.add(Arc::new(LocationCheck {
        group: group.clone(),
        terms: check.parameters.terms,
        uri: check.uri(),
        port: check.parameters.port,
        keepalive_time_ms: check.keepalive_time_ms,
        matching: check.matching(location.load.registry.of::<Matches>())?,
        grpc: check.grpc.clone(),
        backend: backend.clone(),
    }));
    Ok(())
}
