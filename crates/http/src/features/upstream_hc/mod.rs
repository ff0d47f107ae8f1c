//! `health_check` and `match`: active checks of the servers that a location passes requests on to.
//!
//! Here they are read; they are carried out by [`crate::health`].

mod matching;
mod parameters;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;

use crate::health::LocationCheck;
use crate::site::Place;
pub(crate) use matching::{CHECKING_STATUS, Match};
use matching::{Matches, declare};
use parameters::HealthCheck;

conf::directives! {
    declare {
        /// Defines what a reply to a health check must be like: tests of `status`, `header`,
        /// `body`, and variables that it `require`s.
        match(1..=1) {} in MAIN => declare;
    }

    in LOCATION;

    /// Asks every server of the group that `proxy_pass` names again and again, and does not use
    /// those that fail: `interval=`, `jitter=`, `fails=`, `passes=`, `uri=`, `mandatory`
    /// `persistent`, `match=`, `port=`, `keepalive_time=`.
    health_check: Option<HealthCheck>,
}

/// Leaves the check to whoever asks the servers.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    let checkable = place.checkable.take();
    let Some(check) = &conf.health_check else { return Ok(()) };
    let backend = checkable.ok_or_else(|| check.refuse("needs \"proxy_pass\" in its location"))?;
    let group = backend.group().filter(|group| check.is_named(group, place.load));
    let group =
        group.ok_or_else(|| check.refuse("needs a \"proxy_pass\" that names an upstream"))?;
    place.core.health_check = Some(Arc::new(LocationCheck {
        group: group.clone(),
        terms: check.terms,
        uri: check.uri.clone(),
        port: check.port,
        keepalive_time_ms: check.keepalive_time_ms,
        matching: check.matching(place.load.registry.of::<Matches>())?,
        backend: backend.clone(),
    }));
    Ok(())
}
