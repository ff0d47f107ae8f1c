//! `resolver`: the name servers for resolving names at run time.
//!
//! Crate `upstream` resolves names, with the [`ResolverPolicy`] of the location.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::upstream::resolver::NameServers;
use ::upstream::{LineResolver, ResolverPolicy};
use conf::{Layered, Load, Milliseconds, Result};

use super::Layers;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;
    /// The name servers for resolving names at run time, used in turn: for `proxy_pass` with
    /// variables and for servers with `resolve`. `valid=` is how long an answer is used, instead of
    /// its TTL; `ipv4=off` and `ipv6=off` exclude addresses of that kind.
    /// With `status_zone=`, lookups are counted in a zone.
    ///
    /// Syntax: ADDRESS[:PORT]... [valid=TIME] [ipv4=on|off] [ipv6=on|off] [status_zone=NAME]
    ///
    /// ```nginx
    /// server {
    ///     resolver 127.0.0.1:53 valid=30s ipv6=off;
    ///     location / {
    ///         set $backend app.example.com;
    ///         proxy_pass http://$backend:8080;
    ///     }
    /// }
    /// ```
    resolver: Option<NameServers>,
    /// How long resolving a name may take.
    ///
    /// ```nginx
    /// resolver_timeout 5s;
    /// ```
    resolver_timeout: Milliseconds = "30s",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.names = conf.policy();
    Ok(())
}

impl Conf {
    pub(crate) fn policy(&self) -> ResolverPolicy {
        let timeout_ms = self.resolver_timeout.0;
        ResolverPolicy { servers: self.resolver.clone(), timeout_ms }
    }
}

/// The policy of `http {}`, for names that belong to no server.
pub(crate) fn policy_of_main(main: &Layers, load: &mut Load<'_>) -> ResolverPolicy {
    main.resolver.resolve_outermost(load).policy()
}

/// The resolver of `http {}`, for names outside servers, such as those in `upstream` blocks.
pub(crate) fn of_main(main: &Layer, load: &mut Load<'_>) -> Option<LineResolver> {
    let conf = main.resolve_outermost(load);
    let timeout_ms = conf.resolver_timeout.0;
    conf.resolver.map(|names| LineResolver { names, timeout_ms })
}
