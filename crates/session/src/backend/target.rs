//! The group that variables name.

use std::net::SocketAddr;
use std::sync::Arc;

use net::Address;
use observe::{Level, Text};
use upstream::address::Endpoint;
use upstream::named::{ByName, GroupHost};
use upstream::{Group, ResolverPolicy};

use crate::Session;

/// Why there is no group. The reason has been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGroup {
    /// The text names no server.
    Invalid,
    /// Its name was not resolved.
    Unresolved,
}

/// The group of this host: one of `groups`, or one of its own.
pub async fn find_group<X: Session>(
    x: &X,
    host: &GroupHost,
    groups: &ByName,
    names: &ResolverPolicy,
) -> Result<Arc<Group>, NoGroup> {
    if let Some(group) = host.find(groups) {
        return Ok(group.clone());
    }
    if !host.has_port() {
        x.log(Level::Error, format_args!("no port in upstream \"{}\"", Text(&host.text)));
        return Err(NoGroup::Invalid);
    }
    let addresses = match &host.place {
        Endpoint::At(address) => vec![address.clone()],
        Endpoint::Named { host, port } => resolve(x, host, *port, names).await?,
    };
    Ok(Group::passing(&host.text, addresses))
}

/// The addresses of a name that variables gave.
pub async fn resolve<X: Session>(
    x: &X,
    host: &[u8],
    port: u16,
    names: &ResolverPolicy,
) -> Result<Vec<Address>, NoGroup> {
    let Some(resolver) = names.resolver() else {
        x.log(Level::Error, format_args!("no resolver defined to resolve {}", Text(host)));
        return Err(NoGroup::Unresolved);
    };
    let resolved = resolver.addresses(host).await.map_err(|error| {
        x.log(Level::Error, format_args!("{error}"));
        NoGroup::Unresolved
    })?;
    let socket = |ip| Address::Ip(SocketAddr::new(ip, port));
    Ok(resolved.addresses.into_iter().map(socket).collect())
}
