//! Kubernetes: the EndpointSlices of a service, of all services of a namespace, or of all
//! namespaces.
//!
//! An endpoint that terminates and still serves drains.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;

use serde_json::Value;

use super::{Report, Source, host_port};
use crate::kubernetes::{ApiServerPlace, Collection, CollectionChange, WatchEnd};
use crate::server_entry::ServerEntry;
use crate::wanted::{GroupKey, GroupedServers, percent_encoded};

/// What says in a slice whose it is.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The group of a service among many.
const GROUP_PATTERN: &str = "{namespace}.{service}";

pub struct KubernetesSource {
    collection: Collection,
    services: KubernetesServices,
    slices: BTreeMap<(String, String), Value>,
}

/// `NAMESPACE/SERVICE`, `NAMESPACE/*` or `*`, with `:PORT` and `=GROUP`.
#[derive(Clone, Debug, PartialEq)]
pub struct KubernetesServices {
    /// `None`: all.
    namespace: Option<String>,
    /// `None`: all.
    service: Option<String>,
    /// The name or the number of the port; `None`: the first one.
    port: Option<String>,
    /// May have `{namespace}`, `{service}` and `{port}`.
    group: String,
}

impl KubernetesServices {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, group) = match text.split_once('=') {
            Some((rest, group)) => (rest, Some(group.to_owned())),
            None => (text, None),
        };
        let (place, port) = match rest.split_once(':') {
            Some((place, port)) => (place, Some(port.to_owned())),
            None => (rest, None),
        };
        let (namespace, service) = match place.split_once('/') {
            None if place == "*" => (None, None),
            Some((namespace, "*")) => (Some(namespace), None),
            Some((namespace, service)) => (Some(namespace), Some(service)),
            None => return Err(not_services(text)),
        };
        let is_bad = |name: &str| name.is_empty() || name.contains(['/', '*']);
        if namespace.is_some_and(is_bad) || service.is_some_and(is_bad) {
            return Err(not_services(text));
        }
        let group = group.unwrap_or_else(|| service.unwrap_or(GROUP_PATTERN).to_owned());
        let services = Self {
            namespace: namespace.map(str::to_owned),
            service: service.map(str::to_owned),
            port,
            group,
        };
        services.group_of("a", "a", "a")?;
        Ok(services)
    }

    fn path(&self) -> String {
        let within = self.namespace.as_deref().map_or_else(String::new, |namespace| {
            format!("/namespaces/{}", percent_encoded(namespace))
        });
        let selector = match &self.service {
            Some(service) => format!("{SERVICE_LABEL}={service}"),
            None => SERVICE_LABEL.to_owned(),
        };
        format!(
            "/apis/discovery.k8s.io/v1{within}/endpointslices?labelSelector={}",
            percent_encoded(&selector)
        )
    }

    fn group_of(&self, namespace: &str, service: &str, port: &str) -> Result<GroupKey, String> {
        let name = self.group.replace("{namespace}", namespace).replace("{service}", service);
        GroupKey::parse(&name.replace("{port}", port))
    }

    /// The ports of a slice that are wanted, each with its name or number.
    fn ports(&self, slice: &Value) -> Vec<(String, u64)> {
        let ports = slice["ports"].as_array().into_iter().flatten();
        let ports = ports.filter_map(|one| {
            let number = one["port"].as_u64()?;
            let name = one["name"].as_str().filter(|name| !name.is_empty());
            Some((name.map_or_else(|| number.to_string(), str::to_owned), number))
        });
        let is_it = |(name, number): &(String, u64)| match self.port.as_deref() {
            None => true,
            Some(port) => name == port || Some(*number) == port.parse().ok(),
        };
        let most = if self.group.contains("{port}") { usize::MAX } else { 1 };
        ports.filter(is_it).take(most).collect()
    }
}

fn not_services(text: &str) -> String {
    format!("\"{text}\" is not NAMESPACE/SERVICE, NAMESPACE/* or *")
}

/// A service, and the addresses of one of its ports with whether each drains.
#[derive(Debug)]
struct FoundServers {
    service: (String, String),
    drains: BTreeMap<String, bool>,
}

impl KubernetesSource {
    pub fn new(place: ApiServerPlace, services: KubernetesServices) -> Self {
        let collection = Collection::new(place, services.path());
        Self { collection, services, slices: BTreeMap::new() }
    }
}

impl Source for KubernetesSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        let Self { collection, services, slices } = self;
        let end = collection.watch(&mut |change| {
            take(slices, change)?;
            report(wanted(services, slices)?.into_wanted()?)
        });
        end.map_err(|end| match end {
            WatchEnd::Absent => "the API server knows no EndpointSlices".to_owned(),
            WatchEnd::Failed(why) => why,
        })
    }
}

fn take(
    slices: &mut BTreeMap<(String, String), Value>,
    change: CollectionChange,
) -> Result<(), String> {
    match change {
        CollectionChange::Listed(items) => {
            slices.clear();
            for slice in items {
                slices.insert(key(&slice)?, slice);
            }
        }
        CollectionChange::Put(slice) => _ = slices.insert(key(&slice)?, slice),
        CollectionChange::Deleted(slice) => _ = slices.remove(&key(&slice)?),
        CollectionChange::Confirmed => {}
    }
    Ok(())
}

/// The servers of all groups.
fn wanted(
    services: &KubernetesServices,
    slices: &BTreeMap<(String, String), Value>,
) -> Result<GroupedServers, String> {
    let mut found = BTreeMap::new();
    if let (Some(namespace), Some(service)) = (&services.namespace, &services.service)
        && !services.group.contains("{port}")
    {
        let service = (namespace.clone(), service.clone());
        let group = services.group_of(&service.0, &service.1, "")?;
        found.insert(group, FoundServers { service, drains: BTreeMap::new() });
    }
    for ((namespace, _), slice) in slices {
        let namespace = services.namespace.as_ref().unwrap_or(namespace);
        let label = slice["metadata"]["labels"][SERVICE_LABEL].as_str();
        let Some(service) = label.or(services.service.as_deref()) else { continue };
        for (name, port) in services.ports(slice) {
            let group = services.group_of(namespace, service, &name)?;
            let service = (namespace.clone(), service.to_owned());
            add(&mut found, group, service, endpoints(slice, port)?)?;
        }
    }
    let mut grouped = GroupedServers::default();
    for (group, FoundServers { drains, .. }) in found {
        grouped.add(&group, servers(drains)?);
    }
    Ok(grouped)
}

fn add(
    found: &mut BTreeMap<GroupKey, FoundServers>,
    group: GroupKey,
    service: (String, String),
    endpoints: Vec<(String, bool)>,
) -> Result<(), String> {
    let known = match found.entry(group) {
        Entry::Vacant(new) => new.insert(FoundServers { service, drains: BTreeMap::new() }),
        Entry::Occupied(known) if known.get().service != service => {
            let (other, group) = (&known.get().service, known.key());
            return Err(format!(
                "{}/{} and {}/{} would both be the group {group}",
                other.0, other.1, service.0, service.1
            ));
        }
        Entry::Occupied(known) => known.into_mut(),
    };
    // An endpoint that moves from one slice to another may be in both for a moment.
    for (address, is_draining) in endpoints {
        let drains = known.drains.entry(address).or_insert(is_draining);
        *drains = *drains && is_draining;
    }
    Ok(())
}

fn servers(drains: BTreeMap<String, bool>) -> Result<Vec<ServerEntry>, String> {
    let server = |(address, is_draining): (String, bool)| {
        let mut server = ServerEntry::new(&address);
        let set = if is_draining { server.set("drain", "true") } else { Ok(()) };
        set.map(|()| server)
    };
    drains.into_iter().map(server).collect()
}

/// Its namespace and name.
fn key(slice: &Value) -> Result<(String, String), String> {
    let metadata = &slice["metadata"];
    let name = metadata["name"].as_str().ok_or_else(|| "a slice has no name".to_owned())?;
    Ok((metadata["namespace"].as_str().unwrap_or_default().to_owned(), name.to_owned()))
}

/// The addresses of a slice, and whether each drains.
fn endpoints(slice: &Value, port: u64) -> Result<Vec<(String, bool)>, String> {
    if slice["addressType"] == "FQDN" {
        return Err(format!("slice {}: names are not supported", key(slice)?.1));
    }
    let mut found = Vec::new();
    for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
        let condition = |name: &str| endpoint["conditions"][name].as_bool();
        let terminates = condition("terminating") == Some(true);
        let is_ready = condition("ready") != Some(false) && !terminates;
        let is_draining = terminates && condition("serving") != Some(false);
        if !is_ready && !is_draining {
            continue;
        }
        // All addresses of an endpoint are the same; the first is used, as by kube-proxy.
        let address = endpoint["addresses"][0].as_str();
        let address = address.ok_or_else(|| "an endpoint has no address".to_owned())?;
        found.push((host_port(address, port), is_draining));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testing::Peer;

    use super::*;
    use crate::sources::testing::{lists, place, shown};

    fn slice(name: &str, version: u64, endpoints: Value) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": version.to_string()},
            "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "metrics", "port": 9100}, {"name": "http", "port": 8080}]})
    }

    fn ready(address: &str) -> Value {
        json!({"addresses": [address], "conditions": {"ready": true}})
    }

    fn list(version: u64, slices: &[Value]) -> String {
        let metadata = json!({"resourceVersion": version.to_string()});
        let body = json!({"metadata": metadata, "items": slices}).to_string();
        format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len())
    }

    /// A watch with these events; `is_ended`: in order, otherwise it is cut.
    fn watch(events: &[(&str, Value)], is_ended: bool) -> String {
        let line = |(kind, object): &(&str, Value)| {
            format!("{}\n", json!({"type": kind, "object": object}))
        };
        let lines: String = events.iter().map(line).collect();
        let end = if is_ended { "0\r\n\r\n" } else { "" };
        let length = lines.len();
        format!("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n{length:x}\r\n{lines}\r\n{end}")
    }

    fn source(peer: &Peer, services: &str) -> KubernetesSource {
        let services = KubernetesServices::parse(services).unwrap();
        KubernetesSource::new(ApiServerPlace::new(place(peer), None), services)
    }

    #[test]
    fn slices_are_listed_and_watched_over_bookmarks_ends_and_an_old_version() {
        let peer = Peer::playing(|mut connection| {
            let request = connection.request()?;
            let bookmark = json!({"metadata": {"resourceVersion": "20"}});
            let reply = if !request.contains("watch=1") {
                let first = slice("a", 1, json!([ready("10.0.0.1")]));
                list(10, &[first])
            } else if request.contains("resourceVersion=10 ") {
                let added = slice("b", 12, json!([ready("10.0.0.2")]));
                watch(&[("ADDED", added), ("BOOKMARK", bookmark)], true)
            } else if request.contains("resourceVersion=20 ") {
                let deleted = slice("b", 21, json!([]));
                watch(&[("DELETED", deleted), ("ERROR", json!({"code": 410}))], false)
            } else {
                "HTTP/1.1 500 X\nContent-Length: 0\n\n".to_owned()
            };
            connection.send(&reply);
            Some(())
        });
        let (told, _) = lists(&mut source(&peer, "shop/web:http=app"), 5);
        let one = r#"app=[{"server":"10.0.0.1:8080"}]"#;
        let two = r#"app=[{"server":"10.0.0.1:8080"},{"server":"10.0.0.2:8080"}]"#;
        assert_eq!(told, [one, two, two, one, one], "listed, added, ended, deleted, listed again");
        let path = "GET /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices\
            ?labelSelector=kubernetes.io%2Fservice-name%3Dweb HTTP";
        let asked = peer.asked();
        assert!(asked.starts_with(path), "{asked}");
    }

    #[test]
    fn cut_streams_and_nonsense_are_errors() {
        let bookmark = json!({"metadata": {"resourceVersion": "2"}});
        for (second, expected) in [
            (watch(&[("BOOKMARK", bookmark)], false), "the watch was cut"),
            (watch(&[("ERROR", json!({"code": 500, "message": "no"}))], true), "the watch ended"),
            (watch(&[("ADDED", json!({}))], true), "an event has no resourceVersion"),
            ("HTTP/1.1 200 OK\nContent-Length: 2\n\n7\n".to_owned(), "an event has no resource"),
            ("HTTP/1.1 403 No\nContent-Length: 0\n\n".to_owned(), "answered 403"),
        ] {
            let peer = Peer::playing(move |mut connection| {
                let request = connection.request()?;
                let reply = if request.contains("watch=1") { second.clone() } else { list(1, &[]) };
                connection.send(&reply);
                Some(())
            });
            let (told, error) = lists(&mut source(&peer, "a/b"), 5);
            assert_eq!(told, ["b=[]"]);
            assert!(error.contains(expected), "{error}");
        }
        for wrong in ["{}", r#"{"metadata":{"resourceVersion":"1"}}"#, "x"] {
            let length = wrong.len();
            let reply = format!("HTTP/1.1 200 OK\nContent-Length: {length}\n\n{wrong}");
            let (told, _) = lists(&mut source(&Peer::replying(&reply), "a/b"), 5);
            assert!(told.is_empty(), "{wrong}");
        }
    }

    #[test]
    fn endpoints_are_used_as_their_conditions_say() {
        let servers_of = |port: &str| {
            let all = json!([
                ready("10.0.0.1"),
                {"addresses": ["10.0.0.2"], "conditions": {}},
                {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.4"],
                    "conditions": {"ready": false, "serving": true, "terminating": true}},
                {"addresses": ["10.0.0.5"],
                    "conditions": {"ready": false, "serving": false, "terminating": true}}
            ]);
            let services = KubernetesServices::parse(&format!("a/b{port}")).unwrap();
            told(&services, &[slice("a", 1, all)]).unwrap()
        };
        let expected = [
            r#"b=[{"server":"10.0.0.1:8080"}"#,
            r#"{"server":"10.0.0.2:8080"}"#,
            r#"{"drain":true,"server":"10.0.0.4:8080"}]"#,
        ];
        let expected = expected.join(",");
        assert_eq!(servers_of(":http"), expected);
        assert_eq!(servers_of(":8080"), expected);
        assert!(servers_of("").contains("10.0.0.1:9100"));
        assert_eq!(servers_of(":none"), "b=[]");
    }

    fn told(services: &KubernetesServices, slices: &[Value]) -> Result<String, String> {
        let mut known = BTreeMap::new();
        take(&mut known, CollectionChange::Listed(slices.to_vec()))?;
        Ok(shown(&wanted(services, &known)?.into_wanted()?))
    }

    fn slice_of(namespace: &str, service: &str, address: &str) -> Value {
        let mut slice = slice(&format!("{service}-1"), 1, json!([ready(address)]));
        slice["metadata"]["namespace"] = json!(namespace);
        slice["metadata"]["labels"] = json!({SERVICE_LABEL: service});
        slice
    }

    #[test]
    fn services_of_all_namespaces_have_groups_by_a_pattern() {
        let slices = [slice_of("a", "web", "10.0.0.1"), slice_of("b", "web", "10.0.0.2")];
        let told_of = |text: &str| told(&KubernetesServices::parse(text)?, &slices);
        let one = r#"a.web=[{"server":"10.0.0.1:8080"}] b.web=[{"server":"10.0.0.2:8080"}]"#;
        assert_eq!(told_of("*:http").unwrap(), one);
        let named = told_of("*:http=stream/{service}-of-{namespace}").unwrap();
        assert!(named.starts_with("stream/web-of-a=["), "{named}");
        let ports = told_of("*={namespace}-{port}").unwrap();
        let groups: Vec<_> = ports.split(' ').filter_map(|one| one.split('=').next()).collect();
        assert_eq!(groups, ["a-http", "a-metrics", "b-http", "b-metrics"]);
        let error = told_of("*={service}").unwrap_err();
        assert_eq!(error, "a/web and b/web would both be the group web");
        let path = |text: &str| KubernetesServices::parse(text).unwrap().path();
        let all = "/endpointslices?labelSelector=kubernetes.io%2Fservice-name";
        assert_eq!(path("*"), format!("/apis/discovery.k8s.io/v1{all}"));
        assert_eq!(path("shop/*"), format!("/apis/discovery.k8s.io/v1/namespaces/shop{all}"));
        for wrong in ["web", "*/web", "a/b/c", "/a", "a/", "a/b=", "*web"] {
            assert!(KubernetesServices::parse(wrong).is_err(), "{wrong}");
        }
    }
}
