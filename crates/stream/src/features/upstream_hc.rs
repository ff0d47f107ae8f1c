//! `health_check`, `health_check_timeout` and `match`: active checks of the servers of
//! `proxy_pass`.
//!
//! The directives are parsed here; [`crate::health`] runs the checks.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::health::{CheckParameters, is_named};
use conf::{Directive, Inherited, Load, Milliseconds, Result, Value};

use crate::health::ask::ServerQuestion;
use crate::health::matching::{StreamMatches, declare};
use crate::proxy::{ProxyPlan, SessionTarget};
use crate::site::{ServerBuilder, StreamHealthCheck};

conf::directives! {
    declare {
        /// Defines what a health check sends, and what it expects to receive.
        /// - `send TEXT`: what is sent once the connection is open
        /// - `expect TEXT`: what is received must begin with this text
        /// - `expect ~ REGEX`, `expect ~* REGEX`: what is received must match, with or without
        ///   regard to case
        ///
        /// `\x` with two hexadecimal digits stands for a byte. Only the first `proxy_buffer_size`
        /// bytes are examined. Without `expect`, a check passes when everything is sent.
        ///
        /// Syntax: NAME
        /// Differs: not in nginx's sources; as in NGINX Plus. See docs/health.md.
        ///
        /// ```nginx
        /// match redis {
        ///     send "PING\r\n";
        ///     expect "+PONG";
        /// }
        /// ```
        match(1..=1) {} in MAIN => declare;
    }

    in SERVER;

    /// Connects to every server of the group in `proxy_pass` periodically, and does not use
    /// servers that fail. With `udp` it sends a datagram instead: what `send` says, or "nginx
    /// health check". Without `expect`, a server fails if its system reports within
    /// `health_check_timeout` that nobody has the port.
    /// - `interval=TIME`: the time between two checks; 5s
    /// - `jitter=TIME`: the largest random delay added to it; 0
    /// - `fails=NUMBER`, `passes=NUMBER`: consecutive failures or passes that change a server's
    ///   state; 1
    /// - `match=NAME`: what is sent and expected; without it, a connection is enough
    /// - `port=NUMBER`: the port to connect to; the server's own
    /// - `udp`: servers are asked over UDP instead of TCP
    /// - `mandatory`: a server is not used until it has passed; `persistent` after it keeps the
    ///   state across reloads
    ///
    /// Syntax: [interval=TIME] [jitter=TIME] [fails=NUMBER] [passes=NUMBER] [match=NAME]
    /// [port=NUMBER] [udp] [mandatory [persistent]]
    /// Differs: not in nginx's sources; as in NGINX Plus, except that no `zone` is needed. See
    /// docs/health.md.
    ///
    /// ```nginx
    /// upstream database {
    ///     server 127.0.0.1:5432;
    ///     server 127.0.0.1:5433;
    /// }
    ///
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     proxy_pass database;
    ///     health_check interval=2s fails=3 passes=2;
    /// }
    /// ```
    health_check: Option<StreamCheckLine>,

    /// How long a health check may take from its beginning to its end.
    ///
    /// Differs: not in nginx's sources; as in NGINX Plus.
    ///
    /// ```nginx
    /// health_check_timeout 2s;
    /// ```
    health_check_timeout + MAIN: Milliseconds = "5s",
}

#[derive(Clone)]
pub struct StreamCheckLine {
    parameters: CheckParameters,
    is_udp: bool,
}

impl Value for StreamCheckLine {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let (mut parameters, mut is_udp) = (CheckParameters::new(from), false);
        for word in &from.args {
            match &*word.text {
                b"udp" => is_udp = true,
                _ => parameters.set(word)?,
            }
        }
        Ok(Self { parameters, is_udp })
    }
}

/// Passes the check to the server, where [`crate::health`] finds it.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let plan = place.handed_on.of::<Option<Arc<ProxyPlan>>>().take();
    let Some(StreamCheckLine { parameters, is_udp }) = &conf.health_check else { return Ok(()) };
    let plan = plan.ok_or_else(|| parameters.refuse("requires \"proxy_pass\" in its server"))?;
    let group = match &plan.target {
        SessionTarget::Fixed(group) => Some(group).filter(|group| is_named(group, place.load)),
        SessionTarget::Computed(..) => None,
    };
    let group = group.cloned();
    let group = group
        .ok_or_else(|| parameters.refuse("requires a \"proxy_pass\" that names an upstream"))?;
    let matches = place.load.registry.of::<StreamMatches>();
    let matching = parameters.matching(|name| matches.find(name).cloned())?.unwrap_or_default();
    let question = Arc::new(ServerQuestion {
        plan,
        matching: matching.clone(),
        port: parameters.port,
        is_udp: *is_udp,
        timeout_ms: conf.health_check_timeout.0,
    });
    place.server.health_check = Some(StreamHealthCheck {
        group,
        terms: parameters.terms,
        port: parameters.port,
        match_name: matching.name.clone(),
        ask: Box::new(move |x, server| {
            let question = question.clone();
            Box::pin(async move { question.ask(x, server).await })
        }),
    });
    Ok(())
}
