//! Names that are resolved periodically: `server NAME resolve`.

use std::future::poll_fn;
use std::net::SocketAddr;

use net::{Timer, clock};
use observe::Level;
use wire::dns::DomainName;

use super::{ResolveError, Resolver};

/// The shortest time between two lookups; nginx's.
const PAUSE_MIN_MS: u64 = 1000;

/// The address of a `server` line with `resolve`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchedName {
    pub name: Box<[u8]>,
    pub service: Option<Box<[u8]>>,
    /// The port; a service's records have their own.
    pub port: u16,
}

/// A server that a name resolves to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResolvedPeer {
    /// For a service: whether other servers are used first.
    pub backup: bool,
    pub address: SocketAddr,
    /// For a service: the host, as the name of the server.
    pub name: Option<DomainName>,
    /// For a service: its share of the load; else 1.
    pub weight: u16,
}

/// Looks a name up whenever the last result has expired, the first time after `first_ms`; never
/// ends.
///
/// `report` gets the servers each time they have changed, in an order that depends only on them. A
/// name that does not exist has none. After a failed lookup the last result is kept. Both are
/// logged.
pub async fn watch(
    resolver: Resolver,
    watched: WatchedName,
    first_ms: u64,
    mut report: impl FnMut(Result<Vec<ResolvedPeer>, ResolveError>),
) {
    let mut known = None;
    let mut pause_ms = first_ms;
    loop {
        pause(pause_ms).await;
        let outcome = resolver.peers(&watched).await;
        if let Err(error) = &outcome {
            observe::log(Level::Error, format_args!("{error}"));
        }
        let (peers, valid_until_ms) = match outcome {
            Ok(found) => found,
            Err(error) if error.is_not_found() => (Vec::new(), error.valid_until_ms),
            Err(error) => {
                pause_ms = resolver.timeout_ms.max(PAUSE_MIN_MS);
                report(Err(error));
                continue;
            }
        };
        pause_ms = valid_until_ms.saturating_sub(clock::now_ms()).max(PAUSE_MIN_MS);
        if known.as_ref() != Some(&peers) {
            known = Some(peers.clone());
            report(Ok(peers));
        }
    }
}

async fn pause(pause_ms: u64) {
    let timer = Timer::new();
    timer.set(pause_ms);
    poll_fn(|cx| timer.poll(cx)).await;
}

impl Resolver {
    async fn peers(&self, watched: &WatchedName) -> Result<(Vec<ResolvedPeer>, u64), ResolveError> {
        let (mut peers, valid_until_ms) = match &watched.service {
            Some(service) => self.service_peers(&watched.name, service).await?,
            None => {
                let resolved = self.addresses(&watched.name).await?;
                let addresses = resolved.addresses.into_iter();
                let sockets = addresses.map(|ip| SocketAddr::new(ip, watched.port));
                let peer = |address| ResolvedPeer { backup: false, address, name: None, weight: 1 };
                (sockets.map(peer).collect(), resolved.valid_until_ms)
            }
        };
        peers.sort_unstable();
        Ok((peers, valid_until_ms))
    }

    /// Of the targets that have addresses, those of the first priority come first.
    async fn service_peers(
        &self,
        name: &[u8],
        service: &[u8],
    ) -> Result<(Vec<ResolvedPeer>, u64), ResolveError> {
        let services = self.services(name, service).await?;
        let found = || services.targets.iter().filter(|target| target.addresses.is_ok());
        let first = found().map(|target| target.priority).min();
        let peers = found().flat_map(|target| {
            target.sockets().map(move |address| ResolvedPeer {
                backup: Some(target.priority) != first,
                address,
                name: Some(target.name.clone()),
                weight: target.weight,
            })
        });
        Ok((peers.collect(), services.valid_until_ms))
    }
}
