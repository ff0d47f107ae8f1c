//! The listeners of all our Gateways, what is wrong with them, and the status of the Gateways.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::plan::names::{self, GATEWAY_GROUP};
use crate::plan::nginx_conf::PlannedSite;
use crate::plan::object::{self, key, list, text};
use crate::plan::planner::{Planner, Referrer};
use crate::plan::status::{self, StatusCondition};
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
    /// `None`: none that we know.
    pub(super) protocol: Option<ListenerProtocol>,
    /// Empty: any.
    pub(super) hostname: String,
    pub(super) allowed: Value,
    /// The kinds of routes that it takes.
    pub(super) kinds: Vec<&'static str>,
    pub(super) certificates: Vec<(String, String)>,
    accepted: Option<(&'static str, String)>,
    conflict: Option<(&'static str, String)>,
    unresolved: Option<(&'static str, String)>,
    attached: BTreeSet<(ResourceKind, ResourceKey)>,
}

impl GatewayListener {
    fn class(&self) -> Option<PortClass> {
        Some(match self.protocol? {
            ListenerProtocol::Http => PortClass::Plain,
            ListenerProtocol::Https | ListenerProtocol::Tls { .. } => PortClass::Tls,
            ListenerProtocol::Tcp => PortClass::Tcp,
        })
    }

    fn is_accepted(&self) -> bool {
        self.accepted.is_none() && self.conflict.is_none()
    }

    /// Whether it serves its routes.
    pub(super) fn is_programmed(&self) -> bool {
        let is_usable =
            |(reason, _): &(&str, String)| *reason == "InvalidRouteKinds" && !self.kinds.is_empty();
        self.is_accepted() && self.unresolved.as_ref().is_none_or(is_usable)
    }
}

#[derive(Debug, Default)]
pub(super) struct Listeners {
    pub(super) all: Vec<GatewayListener>,
    gateways: Vec<ResourceKey>,
}

impl Listeners {
    pub(super) fn read(planner: &mut Planner<'_>, classes: &BTreeSet<String>) -> Self {
        let mut listeners = Self::default();
        for (key, gateway) in planner.by_age(ResourceKind::Gateway) {
            let class = text(gateway, "/spec/gatewayClassName").unwrap_or_default();
            if !classes.contains(class) {
                continue;
            }
            listeners.gateways.push(key.clone());
            let own: Vec<_> = list(gateway, "/spec/listeners")
                .iter()
                .filter_map(|one| read_listener(planner, key, one))
                .collect();
            let first = listeners.all.len();
            listeners.all.extend(own);
            find_conflicts(&mut listeners.all, first);
        }
        listeners
    }

    pub(super) fn is_ours(&self, gateway: &ResourceKey) -> bool {
        self.gateways.contains(gateway)
    }

    /// The host name of the listener that serves a host at a port: the most specific one.
    pub(super) fn owner(&self, port: u16, protocol: Option<ListenerProtocol>, host: &str) -> &str {
        let is_tls = |one: Option<ListenerProtocol>| !matches!(one, Some(ListenerProtocol::Http));
        let same_port = self.all.iter().filter(|one| {
            one.port == port && one.is_programmed() && is_tls(one.protocol) == is_tls(protocol)
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
            match listener.protocol {
                Some(ListenerProtocol::Http | ListenerProtocol::Https) => {
                    site(planner, listener, &listener.hostname);
                }
                Some(ListenerProtocol::Tls { .. }) => {
                    let port = planner.sites.stream.entry(listener.port).or_default();
                    port.is_tls = true;
                }
                Some(ListenerProtocol::Tcp) => {
                    planner.sites.stream.entry(listener.port).or_default();
                }
                None => {}
            }
        }
    }

    pub(super) fn write_statuses(&self, planner: &mut Planner<'_>) {
        for key in &self.gateways {
            let Some(gateway) = planner.objects.get(ResourceKind::Gateway, key) else { continue };
            let own: Vec<_> = self.all.iter().filter(|one| one.gateway == *key).collect();
            let fields = gateway_status(planner, gateway, &own);
            planner.statuses.extend(status::update(ResourceKind::Gateway, key, gateway, fields));
        }
    }
}

/// The server of a listener for a host, which is made if there is none yet.
pub(super) fn site<'p>(
    planner: &'p mut Planner<'_>,
    listener: &GatewayListener,
    host: &str,
) -> &'p mut PlannedSite {
    let is_tls = listener.protocol == Some(ListenerProtocol::Https);
    planner.sites.http_ports.entry(listener.port).or_insert(is_tls);
    let site = planner.sites.http.entry((listener.port, host.to_owned())).or_default();
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
            older.port == one.port && older.is_programmed() && older.class() != class
        };
        if let Some(other) = older.iter().find(is_other) {
            let ResourceKey { namespace, name } = &other.gateway;
            let message =
                format!("the Gateway {namespace}/{name} has the port for another protocol");
            one.accepted = Some(("PortUnavailable", message));
        }
    }
}

fn gateway_status(
    planner: &Planner<'_>,
    gateway: &Value,
    listeners: &[&GatewayListener],
) -> Vec<(&'static str, Value)> {
    let generation = object::generation(gateway);
    let now = planner.settings.now.as_str();
    let old = list(gateway, "/status/listeners");
    let states: Vec<_> = listeners
        .iter()
        .map(|listener| {
            let of = |one: &&Value| text(one, "/name") == Some(&listener.name);
            let old = old.iter().find(of).map_or(&[][..], |one| list(one, "/conditions"));
            let verdicts = listener_verdicts(listener);
            let conditions = status::conditions(old, &verdicts, generation, now);
            let kinds: Vec<_> = listener
                .kinds
                .iter()
                .map(|kind| json!({"group": GATEWAY_GROUP, "kind": kind}))
                .collect();
            json!({
                "name": listener.name,
                "supportedKinds": kinds,
                "attachedRoutes": listener.attached.len(),
                "conditions": conditions,
            })
        })
        .collect();
    let (addresses, verdicts) = gateway_verdicts(planner, gateway, listeners);
    let old = list(gateway, "/status/conditions");
    let conditions = status::conditions(old, &verdicts, generation, now);
    vec![
        ("addresses", json!(addresses)),
        ("conditions", json!(conditions)),
        ("listeners", json!(states)),
    ]
}

fn gateway_verdicts(
    planner: &Planner<'_>,
    gateway: &Value,
    listeners: &[&GatewayListener],
) -> (Vec<Value>, Vec<StatusCondition>) {
    let kind = |address: &str| {
        if address.parse::<std::net::IpAddr>().is_ok() { "IPAddress" } else { "Hostname" }
    };
    if gateway.pointer("/spec/infrastructure/parametersRef").is_some() {
        let message = "there are no parameters for a Gateway";
        let verdicts = vec![
            StatusCondition::fails("Accepted", "InvalidParameters", message),
            StatusCondition::fails("Programmed", "Invalid", message),
        ];
        return (Vec::new(), verdicts);
    }
    let wanted = list(gateway, "/spec/addresses");
    let ours = &planner.settings.addresses;
    let is_known = |one: &&Value| {
        matches!(text(one, "/type").unwrap_or("IPAddress"), "IPAddress" | "Hostname")
    };
    if let Some(other) = wanted.iter().find(|one| !is_known(one)) {
        let kind = text(other, "/type").unwrap_or_default();
        let message = format!("addresses of the type {kind} are not supported");
        let verdicts = vec![
            StatusCondition::fails("Accepted", "UnsupportedAddress", message.clone()),
            StatusCondition::fails("Programmed", "Invalid", message),
        ];
        return (Vec::new(), verdicts);
    }
    let wanted: Vec<_> = wanted.iter().filter_map(|one| text(one, "/value")).collect();
    let used = ours.iter().filter(|one| wanted.is_empty() || wanted.contains(&one.as_str()));
    let addresses: Vec<_> = used.map(|one| json!({"type": kind(one), "value": one})).collect();
    let mut verdicts = vec![match listeners.iter().find(|one| !one.is_accepted()) {
        None => StatusCondition::holds("Accepted", "Accepted"),
        Some(bad) => {
            let message = format!("the listener {} is not valid", bad.name);
            let is_any = listeners.iter().any(|one| one.is_accepted());
            StatusCondition {
                is_true: is_any,
                ..StatusCondition::fails("Accepted", "ListenersNotValid", message)
            }
        }
    }];
    let missing = wanted.iter().find(|one| !ours.iter().any(|our| our == *one));
    verdicts.push(if let Some(missing) = missing {
        let message = format!("the servers do not have the address {missing}");
        StatusCondition::fails("Programmed", "AddressNotUsable", message)
    } else if listeners.iter().any(|one| one.is_programmed()) {
        StatusCondition::holds("Programmed", "Programmed")
    } else {
        StatusCondition::fails("Programmed", "Invalid", "no listener is valid")
    });
    (addresses, verdicts)
}

fn listener_verdicts(listener: &GatewayListener) -> [StatusCondition; 4] {
    let refused = listener.accepted.as_ref().or(listener.conflict.as_ref());
    [
        match refused {
            Some((reason, message)) => StatusCondition::fails("Accepted", reason, message),
            None => StatusCondition::holds("Accepted", "Accepted"),
        },
        match &listener.conflict {
            Some((reason, message)) => StatusCondition {
                is_true: true,
                ..StatusCondition::fails("Conflicted", reason, message)
            },
            None => StatusCondition::fails("Conflicted", "NoConflicts", ""),
        },
        match &listener.unresolved {
            Some((reason, message)) => StatusCondition::fails("ResolvedRefs", reason, message),
            None => StatusCondition::holds("ResolvedRefs", "ResolvedRefs"),
        },
        if listener.is_programmed() {
            StatusCondition::holds("Programmed", "Programmed")
        } else {
            StatusCondition::fails("Programmed", "Invalid", "the listener is not valid")
        },
    ]
}
