//! The listeners of all our Gateways, and what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::addresses::{self, GatewayAddresses};
use crate::plan::left_out::unbound;
use crate::plan::names::{self, GATEWAY_GROUP};
use crate::plan::nginx_conf::PlannedSite;
use crate::plan::object::{self, key, list, text};
use crate::plan::outcome::PlannedListen;
use crate::plan::planner::{Planner, Referrer};
use crate::{ResourceKey, ResourceKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenerProtocol {
    Http,
    Https,
    /// TLS that a TLSRoute passes through, or that is terminated before its connections go on.
    Tls {
        is_terminated: bool,
    },
    Tcp,
}

/// Listeners of different classes cannot share a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortClass {
    Plain,
    Tls,
    Tcp,
}

#[derive(Debug)]
pub(super) struct GatewayListener {
    pub(super) gateway: ResourceKey,
    pub(super) name: String,
    pub(super) port: u16,
    /// Its port at each address of the Gateway.
    listens: Vec<PlannedListen>,
    /// `None`: none that we know.
    pub(super) protocol: Option<ListenerProtocol>,
    /// Empty: any.
    pub(super) hostname: String,
    pub(super) allowed: Value,
    /// The kinds of routes that it takes.
    pub(super) kinds: Vec<&'static str>,
    pub(super) certificates: Vec<(String, String)>,
    pub(super) accepted: Option<(&'static str, String)>,
    pub(super) conflict: Option<(&'static str, String)>,
    pub(super) unresolved: Option<(&'static str, String)>,
    pub(super) attached: BTreeSet<(ResourceKind, ResourceKey)>,
}

impl GatewayListener {
    fn class(&self) -> Option<PortClass> {
        Some(match self.protocol? {
            ListenerProtocol::Http => PortClass::Plain,
            ListenerProtocol::Https | ListenerProtocol::Tls { .. } => PortClass::Tls,
            ListenerProtocol::Tcp => PortClass::Tcp,
        })
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.is_none() && self.conflict.is_none()
    }

    /// Whether it could serve its routes if its Gateway has an address.
    pub(super) fn is_valid(&self) -> bool {
        let is_usable =
            |(reason, _): &(&str, String)| *reason == "InvalidRouteKinds" && !self.kinds.is_empty();
        self.is_accepted() && self.unresolved.as_ref().is_none_or(is_usable)
    }

    /// Whether it serves its routes.
    pub(super) fn is_programmed(&self) -> bool {
        self.is_valid() && !self.listens.is_empty()
    }

    fn shares_port(&self, other: &Self) -> bool {
        self.listens.iter().any(|listen| other.listens.contains(listen))
    }
}

#[derive(Debug, Default)]
pub(super) struct Listeners {
    pub(super) all: Vec<GatewayListener>,
    pub(super) gateways: BTreeMap<ResourceKey, GatewayAddresses>,
}

/// A host at one port of an address that a route is served for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServedHost {
    /// The index of the listener.
    pub(super) listener: usize,
    pub(super) listen: PlannedListen,
    /// Empty: any.
    pub(super) host: String,
}

impl Listeners {
    pub(super) fn read(planner: &mut Planner<'_>, classes: &BTreeSet<String>) -> Self {
        let is_ours = |gateway: &Value| {
            classes.contains(text(gateway, "/spec/gatewayClassName").unwrap_or_default())
        };
        let mut gateways = planner.by_age(ResourceKind::Gateway);
        gateways.retain(|(_, gateway)| is_ours(gateway));
        let assigned = addresses::assign(&gateways, planner.settings);
        let mut listeners = Self { all: Vec::new(), gateways: assigned };
        for (key, gateway) in gateways {
            let first = listeners.all.len();
            for value in list(gateway, "/spec/listeners") {
                let Some(mut listener) = read_listener(planner, key, value) else { continue };
                if refusal(gateway).is_none() {
                    let of_port = |address| PlannedListen { address, port: listener.port };
                    let own = listeners.gateways[key].own.iter();
                    listener.listens = own.copied().map(of_port).collect();
                }
                let why = planner.refusal(ResourceKind::Gateway, key).unwrap_or_default();
                let unbound = unbound(why);
                if listener.listens.iter().any(|listen| unbound.contains(listen)) {
                    listener.accepted = Some(("PortUnavailable", why.to_owned()));
                }
                listeners.all.push(listener);
            }
            find_conflicts(&mut listeners.all, first);
        }
        listeners
    }

    pub(super) fn is_ours(&self, gateway: &ResourceKey) -> bool {
        self.gateways.contains_key(gateway)
    }

    /// Where a listener serves a host: everywhere but where a more precise listener has it.
    pub(super) fn served(&self, listener: usize, host: &str) -> Vec<ServedHost> {
        let one = &self.all[listener];
        let is_own = |listen: &&PlannedListen| {
            one.protocol == Some(ListenerProtocol::Tcp)
                || self.owner(**listen, one.protocol, host) == one.hostname
        };
        let listens = one.listens.iter().filter(|_| one.is_programmed()).filter(is_own);
        let served = |listen: &PlannedListen| ServedHost {
            listener,
            listen: *listen,
            host: host.to_owned(),
        };
        listens.map(served).collect()
    }

    /// The host name of the listener that serves a host: the most precise one.
    fn owner(&self, at: PlannedListen, protocol: Option<ListenerProtocol>, host: &str) -> &str {
        let is_tls = |one: Option<ListenerProtocol>| !matches!(one, Some(ListenerProtocol::Http));
        let same_port = self.all.iter().filter(|one| {
            one.listens.contains(&at)
                && one.is_programmed()
                && is_tls(one.protocol) == is_tls(protocol)
        });
        let covering = same_port.filter(|one| names::covers(&one.hostname, host));
        let precision = |one: &&GatewayListener| {
            let is_exact = !one.hostname.is_empty() && !one.hostname.starts_with('*');
            (is_exact, one.hostname.len())
        };
        covering.max_by_key(precision).map_or("", |one| &one.hostname)
    }

    pub(super) fn attach(&mut self, listener: usize, kind: ResourceKind, route: &ResourceKey) {
        self.all[listener].attached.insert((kind, route.clone()));
    }

    /// Every listener answers, also without routes.
    pub(super) fn declare_sites(&self, planner: &mut Planner<'_>) {
        for listener in self.all.iter().filter(|one| one.is_programmed()) {
            for listen in &listener.listens {
                planner.listens.insert((*listen, listener.gateway.clone()));
                match listener.protocol {
                    Some(ListenerProtocol::Http | ListenerProtocol::Https) => {
                        site(planner, listener, *listen, &listener.hostname);
                    }
                    Some(ListenerProtocol::Tls { .. }) => {
                        planner.sites.stream.entry(*listen).or_default().is_tls = true;
                    }
                    Some(ListenerProtocol::Tcp) => {
                        planner.sites.stream.entry(*listen).or_default();
                    }
                    None => {}
                }
            }
        }
    }
}

/// Why a Gateway is not accepted, whatever its listeners are: reason and message.
pub(super) fn refusal(gateway: &Value) -> Option<(&'static str, String)> {
    if gateway.pointer("/spec/infrastructure/parametersRef").is_some() {
        return Some(("InvalidParameters", "there are no parameters for a Gateway".to_owned()));
    }
    let kinds = list(gateway, "/spec/addresses").iter();
    let mut kinds = kinds.map(|one| text(one, "/type").unwrap_or("IPAddress"));
    let other = kinds.find(|kind| !matches!(*kind, "IPAddress" | "Hostname"))?;
    Some(("UnsupportedAddress", format!("addresses of the type {other} are not supported")))
}

/// The server of a listener for a host, which is made if there is none yet.
pub(super) fn site<'p>(
    planner: &'p mut Planner<'_>,
    listener: &GatewayListener,
    listen: PlannedListen,
    host: &str,
) -> &'p mut PlannedSite {
    let is_tls = listener.protocol == Some(ListenerProtocol::Https);
    planner.sites.http_ports.entry(listen).or_insert(is_tls);
    let site = planner.sites.http.entry((listen, host.to_owned())).or_default();
    if is_tls && site.certificates.is_empty() {
        site.certificates.clone_from(&listener.certificates);
    }
    site
}

fn read_listener(
    planner: &mut Planner<'_>,
    gateway: &ResourceKey,
    value: &Value,
) -> Option<GatewayListener> {
    let (name, port) = (text(value, "/name")?, object::port(value, "/port")?);
    let passthrough = text(value, "/tls/mode") == Some("Passthrough");
    let protocol = match text(value, "/protocol").unwrap_or_default() {
        "HTTP" => Some(ListenerProtocol::Http),
        "HTTPS" => Some(ListenerProtocol::Https),
        "TLS" => Some(ListenerProtocol::Tls { is_terminated: !passthrough }),
        "TCP" => Some(ListenerProtocol::Tcp),
        _ => None,
    };
    let hostname = match protocol {
        Some(ListenerProtocol::Tcp) | None => "",
        _ => text(value, "/hostname").unwrap_or_default(),
    };
    let mut listener = GatewayListener {
        gateway: gateway.clone(),
        name: name.to_owned(),
        port,
        listens: Vec::new(),
        protocol,
        hostname: hostname.to_ascii_lowercase(),
        allowed: value.get("allowedRoutes").cloned().unwrap_or(Value::Null),
        kinds: Vec::new(),
        certificates: Vec::new(),
        accepted: None,
        conflict: None,
        unresolved: None,
        attached: BTreeSet::new(),
    };
    if protocol.is_none() {
        let protocol = text(value, "/protocol").unwrap_or_default();
        let message = format!("the protocol {protocol} is not supported");
        listener.accepted = Some(("UnsupportedProtocol", message));
    } else if !listener.hostname.is_empty() && !names::is_host(&listener.hostname) {
        listener.accepted = Some(("Invalid", "the host name is not valid".to_owned()));
    } else if protocol == Some(ListenerProtocol::Https) && passthrough {
        let message = "HTTPS cannot be passed through; TLS can".to_owned();
        listener.accepted = Some(("UnsupportedProtocol", message));
    }
    read_kinds(&mut listener);
    if matches!(
        protocol,
        Some(ListenerProtocol::Https | ListenerProtocol::Tls { is_terminated: true })
    ) {
        read_certificates(planner, value, &mut listener);
    }
    Some(listener)
}

fn read_kinds(listener: &mut GatewayListener) {
    let supported: &[&str] = match listener.protocol {
        Some(ListenerProtocol::Http | ListenerProtocol::Https) => &["HTTPRoute", "GRPCRoute"],
        Some(ListenerProtocol::Tls { is_terminated: false }) => &["TLSRoute"],
        Some(ListenerProtocol::Tls { is_terminated: true }) => &["TLSRoute", "TCPRoute"],
        Some(ListenerProtocol::Tcp) => &["TCPRoute"],
        None => &[],
    };
    let asked = list(&listener.allowed, "/kinds");
    if asked.is_empty() {
        listener.kinds = supported.to_vec();
        return;
    }
    for one in asked {
        let kind = text(one, "/kind").unwrap_or_default();
        let is_ours = text(one, "/group").is_none_or(|group| group == GATEWAY_GROUP);
        match supported.iter().find(|supported| **supported == kind).filter(|_| is_ours) {
            Some(supported) => listener.kinds.push(supported),
            None => {
                let message = format!("routes of the kind {kind} are not supported here");
                listener.unresolved = Some(("InvalidRouteKinds", message));
            }
        }
    }
}

fn read_certificates(planner: &mut Planner<'_>, value: &Value, listener: &mut GatewayListener) {
    let references = list(value, "/tls/certificateRefs");
    if references.is_empty() {
        let message = "no certificate is named".to_owned();
        listener.unresolved = Some(("InvalidCertificateRef", message));
    }
    for reference in references {
        match certificate(planner, &listener.gateway, reference) {
            Ok(files) => listener.certificates.push(files),
            Err(fault) => listener.unresolved = Some(fault),
        }
    }
}

fn certificate(
    planner: &mut Planner<'_>,
    gateway: &ResourceKey,
    reference: &Value,
) -> Result<(String, String), (&'static str, String)> {
    let is_secret = text(reference, "/group").unwrap_or_default().is_empty()
        && text(reference, "/kind").unwrap_or("Secret") == "Secret";
    if !is_secret {
        let message = "only Secrets have certificates".to_owned();
        return Err(("InvalidCertificateRef", message));
    }
    let namespace = text(reference, "/namespace").unwrap_or(&gateway.namespace);
    let secret = key(namespace, text(reference, "/name").unwrap_or_default());
    let from = Referrer { group: GATEWAY_GROUP, kind: "Gateway", namespace: &gateway.namespace };
    if !planner.may_refer(from, "Secret", &secret) {
        let message = format!("no ReferenceGrant allows the Secret {namespace}/{}", secret.name);
        return Err(("RefNotPermitted", message));
    }
    planner.certificate(&secret).map_err(|why| ("InvalidCertificateRef", why))
}

/// Compares the listeners of one Gateway, which begin at `first`, with each other and with those of
/// older Gateways.
fn find_conflicts(all: &mut [GatewayListener], first: usize) {
    let (older, own) = all.split_at_mut(first);
    let mut conflicts = BTreeMap::new();
    for (number, one) in own.iter().enumerate() {
        let others = own.iter().enumerate().filter(|(other, _)| *other != number);
        for (_, other) in others.filter(|(_, other)| other.port == one.port) {
            if one.accepted.is_some() || other.accepted.is_some() {
                continue;
            }
            let message = format!("the listener {} has the same port", other.name);
            if one.class() != other.class() {
                conflicts.insert(number, ("ProtocolConflict", message));
            } else if one.hostname == other.hostname {
                conflicts.entry(number).or_insert(("HostnameConflict", message));
            }
        }
    }
    for (number, conflict) in conflicts {
        own[number].conflict = Some(conflict);
    }
    for one in own.iter_mut().filter(|one| one.is_accepted()) {
        let class = one.class();
        let is_other = |older: &&GatewayListener| {
            older.shares_port(one) && older.is_programmed() && older.class() != class
        };
        if let Some(other) = older.iter().find(is_other) {
            let ResourceKey { namespace, name } = &other.gateway;
            let message =
                format!("the Gateway {namespace}/{name} has the port for another protocol");
            one.accepted = Some(("PortUnavailable", message));
        }
    }
}
