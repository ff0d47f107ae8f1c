//! What the log is told of checks: each change once, and with it what was wrong.
//!
//! The words are nginx Plus's, since tools look for them. A failure that changes nothing is of
//! interest to whoever looks closely, and no more.

use std::fmt;

use ::upstream::Server;
use ::upstream::health::{Change, HealthCheck};
use observe::{Level, MessageSource, Text};

use super::checkable::Verdict;
use super::probe::HealthProbe;

/// Writes what an answer is worth.
pub(super) fn log(
    check: &HealthCheck<HealthProbe>,
    server: &Server,
    verdict: &Verdict,
    change: Option<Change>,
) {
    let peer = CheckedPeer { check, server };
    let write = |level, message: fmt::Arguments<'_>| match &check.probe {
        HealthProbe::Location(probe) => {
            probe.log().write(level, MessageSource::default(), message, |_| ())
        }
        HealthProbe::Server(_) => observe::log(level, message),
    };
    let action = match verdict {
        Ok(action) => *action,
        Err(failure) => {
            let level = if change.is_some() { Level::Error } else { Level::Info };
            write(level, format_args!("{} while {}{peer}", failure.cause, failure.action));
            failure.action
        }
    };
    match change {
        None => {}
        Some(Change::Healthy) => {
            write(Level::Notice, format_args!("peer is healthy while {action}{peer}"));
        }
        Some(Change::Unhealthy) => {
            write(Level::Warn, format_args!("peer is unhealthy while {action}{peer}"));
        }
    }
}

/// `, health check "NAME" of peer ADDRESS in upstream "GROUP", port NUMBER`
struct CheckedPeer<'a> {
    check: &'a HealthCheck<HealthProbe>,
    server: &'a Server,
}

impl fmt::Display for CheckedPeer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, port) = match &self.check.probe {
            HealthProbe::Location(probe) => (probe.check().matching.name(), probe.check().port),
            HealthProbe::Server(probe) => (&b""[..], probe.check.port),
        };
        let (name, peer) = (Text(name), Text(self.server.name()));
        let group = Text(self.check.group.name());
        write!(f, ", health check \"{name}\" of peer {peer} in upstream \"{group}\"")?;
        match port {
            None => Ok(()),
            Some(port) => write!(f, ", port {port}"),
        }
    }
}
