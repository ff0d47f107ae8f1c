//! Active health checks: the checks of a configuration, and the probes of servers over HTTP, in the
//! protocol of another backend, or by connecting only.
//!
//! `session::health` schedules probes and logs; `upstream::health` evaluates their results.

mod checkable;
mod grpc;
mod location;
pub(crate) mod matching;
mod probe;
mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::session::ControlJob;
use ::session::health::HealthChecks;
use ::upstream::Group;
use ::upstream::health::HealthCheck;
use zones::Zones;

use crate::site::{Generation, Site};
pub(crate) use checkable::Checkable;
pub(crate) use grpc::GrpcCheck;
pub(crate) use location::LocationCheck;
use probe::BackendProbe;

/// The checks of `http {}`.
#[derive(Default)]
pub(crate) struct Health(HealthChecks<BackendProbe>);

impl ControlJob<Arc<Site>> for Health {
    fn adopt(&mut self, site: &Arc<Site>, _: &Zones) {
        self.0.serve(checks(site));
    }

    /// Stops the checks; the state of servers stays.
    fn leave(&mut self) {
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
