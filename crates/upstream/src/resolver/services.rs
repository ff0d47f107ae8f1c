//! Services (RFC 2782): their targets, and the addresses of those.

use std::net::SocketAddr;

use observe::Level;
use wire::dns::{DomainName, Rcode, Service};

use super::cache::{CachedResult, Topic};
use super::{LookupFailure, ResolveError, Resolved, Resolver, shown, within};

/// The most targets of one service that are resolved, by priority.
const TARGETS_MAX: usize = 256;

/// The targets of a service.
#[derive(Clone, Debug)]
pub struct Services {
    /// By priority; at least one has addresses.
    pub targets: Vec<ServiceTarget>,
    /// Until when the whole result is valid, on the worker's clock.
    pub valid_until_ms: u64,
}

#[derive(Clone, Debug)]
pub struct ServiceTarget {
    pub name: DomainName,
    /// Lower ones are used first.
    pub priority: u16,
    /// Its share of the load among the targets of its priority, at least 1.
    pub weight: u16,
    pub port: u16,
    pub addresses: Result<Resolved, ResolveError>,
}

impl ServiceTarget {
    /// The addresses with the port; none if the host has none.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        let addresses = self.addresses.iter().flat_map(|resolved| &resolved.addresses);
        addresses.map(|ip| SocketAddr::new(*ip, self.port))
    }
}

impl Resolver {
    /// The targets of a service of a name. A service without a dot is queried as `_SERVICE._tcp`.
    /// Each target has a timeout of its own; failures are logged.
    pub async fn services(&self, name: &[u8], service: &[u8]) -> Result<Services, ResolveError> {
        let subject = || format!("service {} of {}", service.escape_ascii(), shown(name));
        let failed = |failure| self.error(subject(), failure);
        let asked = DomainName::from_text(&full_name(name, service));
        let asked = asked.map_err(|_| failed(Rcode::NXDOMAIN.into()))?;
        let found = self.follow(Topic::Services, &asked).await.map_err(failed)?;
        let CachedResult::Services(services) = &found.fact.found else {
            return Err(failed(Rcode::NXDOMAIN.into()));
        };
        let targets = within::all(targets(services).into_iter().map(|s| self.target(s))).await;
        let mut valid_until_ms = found.valid_until_ms;
        for target in &targets {
            match &target.addresses {
                Ok(resolved) => valid_until_ms = valid_until_ms.min(resolved.valid_until_ms),
                Err(error) => observe::log(
                    Level::Error,
                    format_args!("{error} while resolving {}", subject()),
                ),
            }
        }
        match failure_of_all(&targets) {
            Some(failure) => Err(failed(failure)),
            None => Ok(Services { targets, valid_until_ms }),
        }
    }

    async fn target(&self, service: &Service) -> ServiceTarget {
        let Service { priority, weight, port, target: name } = service.clone();
        let addresses = self.addresses_of(&name).await;
        ServiceTarget { name, priority, weight: weight.max(1), port, addresses }
    }
}

fn full_name(name: &[u8], service: &[u8]) -> Vec<u8> {
    match service.contains(&b'.') {
        true => [service, b".", name].concat(),
        false => [b"_", service, b"._tcp.", name].concat(),
    }
}

fn targets(services: &[Service]) -> Vec<&Service> {
    let mut targets: Vec<_> = services.iter().collect();
    targets.sort_by_key(|service| service.priority);
    if targets.len() > TARGETS_MAX {
        let count = targets.len();
        observe::log(
            Level::Error,
            format_args!("a service has {count} targets, only {TARGETS_MAX} of them are used"),
        );
        targets.truncate(TARGETS_MAX);
    }
    targets
}

/// Why no target has an address: NXDOMAIN if any target has that, else the first failure.
fn failure_of_all(targets: &[ServiceTarget]) -> Option<LookupFailure> {
    let mut failures = Vec::new();
    for target in targets {
        failures.push(target.addresses.as_ref().err()?.failure);
    }
    let not_found = LookupFailure::Said(Rcode::NXDOMAIN);
    let found = failures.contains(&not_found).then_some(not_found);
    found.or(failures.first().copied()).or(Some(not_found))
}
