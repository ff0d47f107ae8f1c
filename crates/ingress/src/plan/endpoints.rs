//! The servers of groups: the endpoints of ports of Services.
//!
//! Nothing else of a plan depends on them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::nginx_conf::ServiceGroupName;
use super::object::{self, key, list, text};
use crate::{Objects, ResourceKey, ResourceKind};

/// The Service that a slice of endpoints is of.
pub(crate) fn service_of(slice: &Value, namespace: &str) -> Option<ResourceKey> {
    let service = text(slice, "/metadata/labels/kubernetes.io~1service-name");
    service.map(|service| key(namespace, service))
}

/// The servers of those groups whose Services are among `services`, by the names of the groups.
pub(crate) fn servers(
    objects: &Objects,
    groups: &BTreeSet<ServiceGroupName>,
    services: &BTreeSet<ResourceKey>,
) -> BTreeMap<String, Vec<String>> {
    let endpoints = Endpoints::new(objects);
    let groups = groups.iter().filter(|group| services.contains(&group.service_key()));
    groups.map(|group| (group.api_name(), group.servers(&endpoints.of(group)))).collect()
}

/// The endpoints of all Services.
pub(crate) struct Endpoints<'o> {
    objects: &'o Objects,
    /// By Service.
    slices: BTreeMap<ResourceKey, Vec<&'o Value>>,
}

impl<'o> Endpoints<'o> {
    pub(crate) fn new(objects: &'o Objects) -> Self {
        let mut slices: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (own, slice) in objects.of(ResourceKind::EndpointSlice) {
            if let Some(service) = service_of(slice, &own.namespace) {
                slices.entry(service).or_default().push(slice);
            }
        }
        Self { objects, slices }
    }

    /// The endpoints of a group's port, as arguments of `server`.
    pub(crate) fn of(&self, group: &ServiceGroupName) -> Vec<String> {
        let own = group.service_key();
        let service = self.objects.get(ResourceKind::Service, &own);
        let ports = service.map_or(&[][..], |service| list(service, "/spec/ports"));
        let found = ports.iter().find(|one| object::port(one, "/port") == Some(group.port));
        let name = found.and_then(|one| text(one, "/name")).unwrap_or_default();
        let (mut ready, mut leaving) = (BTreeSet::new(), BTreeSet::new());
        for slice in self.slices.get(&own).map_or(&[][..], Vec::as_slice) {
            let is_named = |one: &&Value| text(one, "/name").unwrap_or_default() == name;
            let Some(number) = list(slice, "/ports")
                .iter()
                .find(is_named)
                .and_then(|one| object::port(one, "/port"))
            else {
                continue;
            };
            for endpoint in list(slice, "/endpoints") {
                endpoint_servers(endpoint, number, &mut ready, &mut leaving);
            }
        }
        // As in kube-proxy: without ready ones, those that leave are better than nothing.
        if ready.is_empty() {
            return leaving.into_iter().collect();
        }
        let draining = leaving.difference(&ready).map(|server| format!("{server} drain"));
        let draining: Vec<_> = draining.collect();
        ready.into_iter().chain(draining).collect()
    }
}

fn endpoint_servers(
    endpoint: &Value,
    port: u16,
    ready: &mut BTreeSet<String>,
    leaving: &mut BTreeSet<String>,
) {
    let is = |name: &str| endpoint.pointer(name).and_then(Value::as_bool);
    let into = if is("/conditions/ready").unwrap_or(true) {
        ready
    } else if is("/conditions/terminating") == Some(true) && is("/conditions/serving") == Some(true)
    {
        leaving
    } else {
        return;
    };
    for address in list(endpoint, "/addresses").iter().filter_map(Value::as_str) {
        if let Ok(address) = address.parse::<std::net::IpAddr>() {
            let address = std::net::SocketAddr::new(address, port);
            // The cluster says which endpoints are well; a slow answer does not.
            into.insert(format!("{address} max_fails=0"));
        }
    }
}
