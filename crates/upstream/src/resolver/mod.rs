//! Names to addresses at run time, with the semantics of nginx's resolver.
//!
//! A query goes to one name server, and every few seconds to the next, until one answers or no
//! waiter is left; `resolver_timeout` limits each wait. All waiters for a name share one lookup.
//! Answers are kept for their TTL or for `valid=`. Failures are not kept, and a failure is final:
//! only the next lookup uses the next name server. An address is never looked up.
//!
//! Every worker has its own caches, and a reload begins with empty ones, as in nginx. Deliberately
//! absent: /etc/hosts and search lists, because only the name servers are queried; IDNA.
//!
//! ```text
//! Resolver::addresses -> follow (aliases) -> Cache
//!                                         -> Flight <- Lookup -> Line (UDP), tcp -> name servers
//! ```

mod cache;
mod counters;
mod error;
mod flight;
mod inbox;
mod line;
mod lookup;
mod name_servers;
mod servers;
mod services;
mod state;
mod tcp;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod watch;
mod within;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use net::clock;
use wire::dns::{DomainName, Rcode};

use crate::random::XorShift;
use cache::{CachedResult, Fact, Topic};
use state::{Followed, ResolverState};

pub use counters::{ResolverCounters, ResolverCounts, ResolverZones};
pub use error::{LookupFailure, ResolveError};
pub use name_servers::NameServers;
pub use servers::ResolverSettings;
pub use services::{ServiceTarget, Services};
pub use state::ALIASES_FOLLOWED_MAX;
pub use tcp::exchange_over_tcp;
pub use watch::{ResolvedPeer, WatchedName, watch};

/// How long a failure is valid without `valid=`.
pub const FAILURE_VALID_MS: u64 = 10_000;

/// One worker's resolver for one `resolver` line.
#[derive(Clone)]
pub struct Resolver {
    state: Rc<ResolverState>,
    timeout_ms: u64,
}

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// At least one. From the cache, they are rotated every time.
    pub addresses: Vec<IpAddr>,
    /// Until when they are valid, on the worker's clock.
    pub valid_until_ms: u64,
}

impl Resolver {
    /// The addresses of a name. The address of an address is itself.
    pub async fn addresses(&self, name: &[u8]) -> Result<Resolved, ResolveError> {
        if let Some(literal) = literal(name) {
            return Ok(literal);
        }
        match DomainName::from_text(name) {
            Ok(asked) => self.addresses_of(&asked).await,
            Err(_) => Err(self.error(shown(name), Rcode::NXDOMAIN.into())),
        }
    }

    /// The same, if the cache has the answer.
    pub fn known(&self, name: &[u8]) -> Option<Resolved> {
        literal(name).or_else(|| {
            let name = DomainName::from_text(name).ok()?;
            let followed = self.state.follow_known(Topic::Addresses, &name)?;
            self.resolved(&followed)
        })
    }

    pub async fn name_of(&self, address: IpAddr) -> Result<DomainName, ResolveError> {
        let found = self.follow(Topic::Pointer, &DomainName::reverse(address)).await;
        let name = found.and_then(|followed| match &followed.fact.found {
            CachedResult::Pointer(name) => Ok(name.clone()),
            _ => Err(Rcode::NXDOMAIN.into()),
        });
        name.map_err(|failure| self.error(address.to_string(), failure))
    }

    async fn addresses_of(&self, name: &DomainName) -> Result<Resolved, ResolveError> {
        let found = self.follow(Topic::Addresses, name).await;
        let resolved = found
            .and_then(|followed| self.resolved(&followed).ok_or_else(|| Rcode::NXDOMAIN.into()));
        resolved.map_err(|failure| self.error(name.to_string(), failure))
    }

    async fn follow(&self, topic: Topic, name: &DomainName) -> Result<Followed, LookupFailure> {
        if let Some(known) = self.state.follow_known(topic, name) {
            return Ok(known);
        }
        match within::within(self.timeout_ms, self.state.follow(topic, name)).await {
            Some(outcome) => outcome.map_err(LookupFailure::from),
            None => Err(LookupFailure::TimedOut),
        }
    }

    fn resolved(&self, followed: &Followed) -> Option<Resolved> {
        let Fact { found: CachedResult::Addresses(v4, v6), .. } = &*followed.fact else {
            return None;
        };
        let addresses = match followed.cached {
            true => rotated(v4, v6, &mut self.state.random.borrow_mut()),
            false => {
                v4.iter().copied().map(IpAddr::V4).chain(v6.iter().map(|ip| (*ip).into())).collect()
            }
        };
        Some(Resolved { addresses, valid_until_ms: followed.valid_until_ms })
    }

    /// An error that is valid as long as a failure.
    fn error(&self, subject: String, failure: LookupFailure) -> ResolveError {
        let valid_ms = self.state.rotation.settings.valid_ms.unwrap_or(FAILURE_VALID_MS);
        let valid_until_ms = clock::now_ms().saturating_add(valid_ms);
        ResolveError { subject, failure, valid_until_ms }
    }
}

fn literal(name: &[u8]) -> Option<Resolved> {
    let address = conf::address(name)?;
    Some(Resolved { addresses: vec![address], valid_until_ms: u64::MAX })
}

/// A name as it was given, escaped for a log line.
fn shown(name: &[u8]) -> String {
    name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase().escape_ascii().to_string()
}

/// nginx's order: each family rotated at random, one after the other, then all rotated at random.
fn rotated(v4: &[Ipv4Addr], v6: &[Ipv6Addr], random: &mut XorShift) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::with_capacity(v4.len() + v6.len());
    addresses.extend(v4.iter().copied().map(IpAddr::V4));
    addresses.extend(v6.iter().copied().map(IpAddr::V6));
    let (first, second) = addresses.split_at_mut(v4.len());
    rotate(first, random);
    rotate(second, random);
    rotate(&mut addresses, random);
    addresses
}

fn rotate(addresses: &mut [IpAddr], random: &mut XorShift) {
    if addresses.len() > 1 {
        addresses.rotate_left((random.next() % addresses.len() as u64) as usize);
    }
}
