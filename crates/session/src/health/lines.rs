//! Log lines about checks: each change of state once, after the error that caused it.
//!
//! The words are those of NGINX Plus, because tools look for them. A failure without a change of
//! state is logged at `info`.

use std::fmt;

use observe::{Level, Text};
use upstream::Server;
use upstream::health::{Change, HealthCheck};

use super::probe::{HealthProbe, Verdict};

/// Logs the result of a check and the change that it made.
pub(super) fn log<P: HealthProbe>(
    check: &HealthCheck<P>,
    server: &Server,
    verdict: &Verdict,
    change: Option<Change>,
) {
    let peer = CheckedPeer { check, server };
    let write = |level, message: fmt::Arguments<'_>| check.probe.log(level, message);
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
struct CheckedPeer<'a, P> {
    check: &'a HealthCheck<P>,
    server: &'a Server,
}

impl<P: HealthProbe> fmt::Display for CheckedPeer<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let probe = &self.check.probe;
        let (name, peer) = (Text(probe.match_name()), Text(self.server.name()));
        let group = Text(self.check.group.name());
        write!(f, ", health check \"{name}\" of peer {peer} in upstream \"{group}\"")?;
        match probe.port() {
            None => Ok(()),
            Some(port) => write!(f, ", port {port}"),
        }
    }
}
