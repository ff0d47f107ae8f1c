//! Objects that are left out, because the server refuses what they become.
//!
//! Of a Gateway, these are the listeners that the server cannot have. Files of routes stay, so that
//! all others refer to what they did before, but have nothing of the object: its locations answer
//! 503. They hold their paths, because a request that an object keeps from others must not get to
//! one that lets it pass.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::outcome::{PlannedFiles, PlannedListen};
use crate::{ResourceKey, ResourceKind, ResourceRef};

/// The first parts of the names of folders of routes.
const KINDS: [(&str, ResourceKind); 3] = [
    ("httproute", ResourceKind::HttpRoute),
    ("grpcroute", ResourceKind::GrpcRoute),
    ("ingress", ResourceKind::Ingress),
];

/// The object that a file is about alone: `routes/ingress.shop.web/path-1.conf`.
pub(crate) fn owner(file: &str) -> Option<ResourceRef> {
    let (id, _) = file.strip_prefix("routes/")?.split_once('/')?;
    let mut parts = id.splitn(3, '.');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == kind)?;
    Some((*kind, ResourceKey { namespace: namespace.to_owned(), name: name.to_owned() }))
}

pub(crate) fn leave_out(files: &mut PlannedFiles, is_left_out: impl Fn(&ResourceRef) -> bool) {
    for (file, content) in files.iter_mut() {
        if owner(file).is_some_and(|owner| is_left_out(&owner)) {
            *content = if is_body(file) { b"return 503;\n".to_vec() } else { Vec::new() };
        }
    }
}

/// Where the server cannot listen, as far as its error says.
pub(crate) fn unbound(error: &str) -> BTreeSet<PlannedListen> {
    let bound = error.split("bind() to ").skip(1);
    let address = |rest: &str| rest.split(' ').next()?.parse::<SocketAddr>().ok();
    let listen = |bound: SocketAddr| {
        let address = Some(bound.ip()).filter(|address| !address.is_unspecified());
        PlannedListen { address, port: bound.port() }
    };
    bound.filter_map(address).map(listen).collect()
}

/// Whether it is the content of a location.
fn is_body(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.starts_with("rule-") || name.starts_with("path-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_addresses() {
        let error = "bind() to 0.0.0.0:83 failed (98: Address already in use); bind() to \
                     10.0.0.1:22 failed (13: Permission denied); bind() to unix:/a failed";
        let own = PlannedListen { address: "10.0.0.1".parse().ok(), port: 22 };
        assert_eq!(unbound(error), [PlannedListen { address: None, port: 83 }, own].into());
    }

    #[test]
    fn a_file_of_a_route_has_an_owner() {
        let (kind, key) = owner("routes/ingress.shop.web.v2/path-1.conf").unwrap();
        assert_eq!(kind, ResourceKind::Ingress);
        assert_eq!((&*key.namespace, &*key.name), ("shop", "web.v2"));
        for other in ["servers/80._.conf", "routes/tcproute.a.b/maps.conf", "routes/x", ""] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
