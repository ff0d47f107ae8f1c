//! `resolver`: the name servers for resolving names at run time.

use std::sync::Arc;

use ::upstream::resolver::NameServers;
use ::upstream::{LineResolver, ResolverPolicy};
use conf::{Layered, Load, Milliseconds, Result};

use super::Layers;
use crate::site::ServerBuilder;

conf::directives! {
    in MAIN | SERVER;
    /// The name servers that look up names at run time, used in turn: for `proxy_pass` with
    /// variables and for servers with `resolve`.
    /// `valid=` is how long an answer is used, instead of its TTL; `ipv4=off` and `ipv6=off` leave
    /// addresses of that kind out.
    ///
    /// Syntax: ADDRESS[:PORT]... [valid=TIME] [ipv4=on|off] [ipv6=on|off] [status_zone=NAME]
    ///
    /// ```nginx
    /// resolver 127.0.0.1:53 valid=30s ipv6=off;
    /// upstream backend {
    ///     zone backend 64k;
    ///     server db.example.com:5432 resolve;
    /// }
    /// ```
    resolver: Option<NameServers>,
    /// How long the lookup of a name may take.
    ///
    /// ```nginx
    /// resolver_timeout 5s;
    /// ```
    resolver_timeout: Milliseconds = "30s",
}

/// Passes the settings to the server.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    place.server.names = conf.policy();
    Ok(())
}

/// The resolver of `stream {}`, for upstream groups.
pub(crate) fn of_main(main: &Layer, load: &mut Load<'_>) -> Option<LineResolver> {
    let conf = main.resolve_outermost(load);
    let timeout_ms = conf.resolver_timeout.0;
    conf.resolver.map(|names| LineResolver { names, timeout_ms })
}

impl Conf {
    fn policy(&self) -> ResolverPolicy {
        let timeout_ms = self.resolver_timeout.0;
        ResolverPolicy { servers: self.resolver.clone(), timeout_ms }
    }
}

/// The policy of `stream {}`, for names that belong to no server.
pub(crate) fn policy_of_main(main: &Layers, load: &mut Load<'_>) -> ResolverPolicy {
    main.resolver.resolve_outermost(load).policy()
}
