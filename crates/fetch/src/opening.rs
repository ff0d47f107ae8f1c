//! Finds the address of an origin and opens a connection.

use std::future::poll_fn;
use std::net::SocketAddr;

use net::{Address, Connect, Stream, Timer};
use upstream::ResolverPolicy;
use upstream::address::Endpoint;

use crate::error::{FetchFault, FetchStep};
use crate::kept::FetchConnection;
use crate::limits::FetchLimits;
use crate::progress::FetchProgress;
use crate::request::FetchOrigin;

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 16;

/// A connection to be opened.
pub(crate) struct FetchOpening<'a> {
    pub(crate) names: &'a ResolverPolicy,
    pub(crate) origin: &'a FetchOrigin,
    pub(crate) limits: &'a FetchLimits,
    pub(crate) progress: &'a FetchProgress<'a>,
}

impl FetchOpening<'_> {
    /// Connects to the first address that accepts.
    pub(crate) async fn connect(&self) -> Result<FetchConnection, FetchFault> {
        let mut fault = FetchFault::Connection(std::io::ErrorKind::AddrNotAvailable.into());
        for address in self.addresses().await?.into_iter().take(ADDRESSES_MAX) {
            self.progress.step.set(FetchStep::Connecting);
            self.progress.address.replace(Some(address.clone()));
            match self.connect_to(&address).await {
                Ok(stream) => return Ok(FetchConnection { stream, address }),
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }

    async fn addresses(&self) -> Result<Vec<Address>, FetchFault> {
        let (host, port) = match &self.origin.place {
            Endpoint::At(address) => return Ok(vec![address.clone()]),
            Endpoint::Named { host, port } => (host, *port),
        };
        self.progress.step.set(FetchStep::Resolving);
        let resolver = self.names.resolver().ok_or(FetchFault::NoResolver)?;
        let found = resolver.addresses(host).await.map_err(FetchFault::Unresolved)?;
        let at_port = |ip| Address::Ip(SocketAddr::new(ip, port));
        Ok(found.addresses.into_iter().map(at_port).collect())
    }

    async fn connect_to(&self, address: &Address) -> Result<Stream, FetchFault> {
        let FetchOrigin { transport, .. } = self.origin;
        let options = Connect { transport: transport.clone(), ..Connect::default() };
        let begun = options.begin(address);
        let mut connecting = begun.map_err(|(_, error)| FetchFault::Connection(error))?;
        let connected = poll_fn(|cx| {
            let polled = connecting.poll(cx);
            if polled.is_pending() && connecting.is_securing() {
                self.progress.step.set(FetchStep::Securing);
            }
            polled
        });
        let timer = Timer::new();
        timer.set(self.limits.connect_ms);
        match timer.limit(connected).await {
            Some(connected) => connected.map_err(FetchFault::Connection),
            None => Err(FetchFault::NotConnected(self.limits.connect_ms)),
        }
    }
}
