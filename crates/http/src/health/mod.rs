//! Active checks of backends: the checks of a configuration, and how servers are asked over HTTP,
//! in the protocol of another backend, or for a mere connection.
//!
//! When servers are asked, and log lines, are `session::health`'s; what the answers come to is
//! `upstream::health`'s.

mod checkable;
mod location;
pub(crate) mod matching;
mod probe;
mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::session::health::HealthChecks;
use ::upstream::Group;
use ::upstream::health::HealthCheck;

use crate::site::{Generation, Site};
pub(crate) use checkable::Checkable;
pub(crate) use location::LocationCheck;
use probe::BackendProbe;

/// The checks of `http {}`, on the thread that made this.
#[derive(Default)]
pub struct Health(HealthChecks<BackendProbe>);

impl Health {
    /// Continues with the checks of this configuration. Call it before any worker has it, so that
    /// no server is used that must pass first.
    pub fn serve(&self, site: &Arc<Site>) {
        self.0.serve(checks(site));
    }

    /// Stops asking; what is known of servers stays.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The checks of a configuration, in a fixed order.
fn checks(site: &Arc<Site>) -> Vec<HealthCheck<BackendProbe>> {
    let of_group = |group: &Arc<Group>| {
        let check = group.check()?.clone();
        let (group, terms) = (group.clone(), check.terms);
        let probe = BackendProbe::Server(server::ServerProbe { check });
        Some(HealthCheck { group, terms, probe })
    };
    let mut checks: Vec<_> = site.groups.iter().filter_map(of_group).collect();
    let generation = Generation::new(site.clone(), 0);
    checks.extend(location::probes(&generation).map(|(probe, check)| HealthCheck {
        group: check.group.clone(),
        terms: check.terms,
        probe: BackendProbe::Location(probe),
    }));
    checks
}
