//! BackendTLSPolicy: TLS to the servers of a Service.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::plan::names::{self, GATEWAY_GROUP};
use crate::plan::object::{self, key, list, text};
use crate::plan::planner::{Planner, ServicePort};
use crate::plan::status::{self, StatusCondition};
use crate::{ResourceKey, ResourceKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceTls {
    /// The name that certificates must have.
    pub(super) name: String,
    /// The file with the authorities, within the folder; `None`: those of the system.
    pub(super) authorities: Option<String>,
}

/// The most Gateways that the status of a policy can name.
pub(super) const ANCESTORS_MAX: usize = 16;

/// Where systems have the authorities that they trust.
pub(super) const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The policy for a port of a Service, if there is one. A policy that cannot be followed is an
/// error: without it, requests would travel in the clear.
pub(super) fn backend_tls(
    planner: &mut Planner<'_>,
    port: &ServicePort,
) -> Result<Option<ServiceTls>, (&'static str, String)> {
    let Some((own, policy)) = policy_of(planner, port) else { return Ok(None) };
    let result = read(planner, own, policy);
    result.map(Some).map_err(|(_, why)| ("BackendNotFound", why))
}

/// A policy for the port itself wins over one for the whole Service.
fn policy_of<'o>(
    planner: &Planner<'o>,
    port: &ServicePort,
) -> Option<(&'o ResourceKey, &'o Value)> {
    let service =
        planner.objects.get(ResourceKind::Service, &key(&port.namespace, &port.service))?;
    let of_port = list(service, "/spec/ports")
        .iter()
        .find(|one| object::port(one, "/port") == Some(port.port));
    let port_name = of_port.and_then(|one| text(one, "/name"));
    let mut found = None;
    for (own, policy) in planner.by_age(ResourceKind::BackendTlsPolicy) {
        let targets = list(policy, "/spec/targetRefs").iter();
        let mut targets = targets.filter(|one| {
            own.namespace == port.namespace
                && text(one, "/group").unwrap_or_default().is_empty()
                && text(one, "/kind") == Some("Service")
                && text(one, "/name") == Some(&port.service)
        });
        let section = |one: &Value| text(one, "/sectionName").map(str::to_owned);
        if targets.clone().any(|one| section(one).is_some() && section(one).as_deref() == port_name)
        {
            return Some((own, policy));
        }
        if found.is_none() && targets.any(|one| section(one).is_none()) {
            found = Some((own, policy));
        }
    }
    found
}

fn read(
    planner: &mut Planner<'_>,
    own: &ResourceKey,
    policy: &Value,
) -> Result<ServiceTls, (&'static str, String)> {
    let name = text(policy, "/spec/validation/hostname").unwrap_or_default();
    if !names::is_name(name) {
        return Err(("Invalid", format!("{name:?} is not a host name")));
    }
    if !list(policy, "/spec/validation/subjectAltNames").is_empty() {
        return Err(("Invalid", "subjectAltNames are not supported".to_owned()));
    }
    let references = list(policy, "/spec/validation/caCertificateRefs");
    let well_known = text(policy, "/spec/validation/wellKnownCACertificates");
    let authorities = match (references, well_known) {
        ([], Some("System")) => None,
        ([], _) => {
            let message = "no authorities are named".to_owned();
            return Err(("NoValidCACertificate", message));
        }
        (references, _) => Some(authorities(planner, own, references)?),
    };
    Ok(ServiceTls { name: name.to_owned(), authorities })
}

fn authorities(
    planner: &mut Planner<'_>,
    own: &ResourceKey,
    references: &[Value],
) -> Result<String, (&'static str, String)> {
    let mut text_of_all = String::new();
    for reference in references {
        let kind = text(reference, "/kind").unwrap_or_default();
        if kind != "ConfigMap" {
            let message = format!("authorities of the kind {kind} are not supported");
            return Err(("InvalidKind", message));
        }
        let name = text(reference, "/name").unwrap_or_default();
        let map = planner.objects.get(ResourceKind::ConfigMap, &key(&own.namespace, name));
        let certificate = map.and_then(|map| map.get("data")?.get("ca.crt")?.as_str());
        let certificate = certificate.ok_or_else(|| {
            ("InvalidCACertificateRef", format!("the ConfigMap {name} with ca.crt does not exist"))
        })?;
        text_of_all.push_str(certificate);
        text_of_all.push('\n');
    }
    let name = format!("policy.{}.{}", own.namespace, own.name);
    let read = planner.authorities_file(&name, text_of_all.into_bytes());
    read.map_err(|why| ("InvalidCACertificateRef", why))
}

/// The status of each policy for a Service that a route of ours uses, by the Gateways of the route.
pub(super) fn write_statuses(planner: &mut Planner<'_>, gateways: &[ResourceKey]) {
    let mut taken = BTreeSet::new();
    for (own, policy) in planner.by_age(ResourceKind::BackendTlsPolicy) {
        let is_used = |target: &Value| {
            let service = text(target, "/name").unwrap_or_default();
            planner.sites.groups.has_service(&own.namespace, service)
        };
        let is_ours = list(policy, "/spec/targetRefs").iter().any(is_used);
        let gateways = if is_ours { gateways } else { &[] };
        let has_target = has_target_of_its_own(own, policy, &mut taken);
        let verdicts = match read(planner, own, policy) {
            Ok(_) if !has_target => [
                StatusCondition::fails("Accepted", "Conflicted", "older policies have its targets"),
                StatusCondition::holds("ResolvedRefs", "ResolvedRefs"),
            ],
            Ok(_) => [
                StatusCondition::holds("Accepted", "Accepted"),
                StatusCondition::holds("ResolvedRefs", "ResolvedRefs"),
            ],
            Err((reason, why)) => {
                let accepted = if reason == "Invalid" { "Invalid" } else { "NoValidCACertificate" };
                [
                    StatusCondition::fails("Accepted", accepted, why.clone()),
                    match reason {
                        "Invalid" => StatusCondition::holds("ResolvedRefs", "ResolvedRefs"),
                        reason => StatusCondition::fails("ResolvedRefs", reason, why),
                    },
                ]
            }
        };
        let controller = planner.settings.controller_name.clone();
        let is_ours = |one: &&Value| text(one, "/controllerName") == Some(&controller);
        let old = list(policy, "/status/ancestors");
        let mut all: Vec<Value> = old.iter().filter(|one| !is_ours(one)).cloned().collect();
        for gateway in gateways {
            let reference = json!({
                "group": GATEWAY_GROUP, "kind": "Gateway",
                "namespace": gateway.namespace, "name": gateway.name,
            });
            let before = old.iter().filter(is_ours).find(|one| one["ancestorRef"] == reference);
            let before = before.map_or(&[][..], |one| list(one, "/conditions"));
            let generation = object::generation(policy);
            let now = planner.settings.now.as_str();
            all.push(json!({
                "ancestorRef": reference,
                "controllerName": controller,
                "conditions": status::conditions(before, &verdicts, generation, now),
            }));
        }
        if !all.is_empty() || !old.is_empty() {
            let fields = vec![("ancestors", json!(all))];
            planner.statuses.extend(status::update(
                ResourceKind::BackendTlsPolicy,
                own,
                policy,
                fields,
            ));
        }
    }
}

/// Whether there is a target that no older policy has.
fn has_target_of_its_own(
    own: &ResourceKey,
    policy: &Value,
    taken: &mut BTreeSet<(String, String, Option<String>)>,
) -> bool {
    let mut has_any = false;
    for target in list(policy, "/spec/targetRefs") {
        let service = text(target, "/name").unwrap_or_default().to_owned();
        let section = text(target, "/sectionName").map(str::to_owned);
        has_any |= taken.insert((own.namespace.clone(), service, section));
    }
    has_any
}
