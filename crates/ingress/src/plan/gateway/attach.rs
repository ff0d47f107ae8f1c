//! Which listeners a route is attached to, for which hosts, and the status of the route.

use serde_json::{Value, json};

use super::listeners::{GatewayListener, Listeners, ServedHost};
use crate::plan::names::{self, GATEWAY_GROUP};
use crate::plan::object::{self, key, list, text, texts};
use crate::plan::planner::Planner;
use crate::plan::status::{self, StatusCondition};
use crate::{ResourceKey, ResourceKind};

/// A kind of routes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteKind {
    pub(super) kind: ResourceKind,
    pub(super) name: &'static str,
    /// The beginning of the names of its files.
    pub(super) id: &'static str,
    pub(super) has_hosts: bool,
}

#[derive(Debug)]
pub(super) struct Parent<'v> {
    value: &'v Value,
    /// Listeners, by their index, and hosts; the empty host is any.
    pub(super) attached: Vec<(usize, Vec<String>)>,
    refused: Option<(&'static str, String)>,
}

/// The parents of a route that are ours.
pub(super) fn parents<'v>(
    planner: &Planner<'_>,
    listeners: &Listeners,
    kind: RouteKind,
    own: &ResourceKey,
    route: &'v Value,
) -> Vec<Parent<'v>> {
    let hosts = if kind.has_hosts { hosts(route) } else { vec![String::new()] };
    let mut parents = Vec::new();
    for value in list(route, "/spec/parentRefs") {
        let is_gateway = text(value, "/group").unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
            && text(value, "/kind").unwrap_or("Gateway") == "Gateway";
        let namespace = text(value, "/namespace").unwrap_or(&own.namespace);
        let gateway = key(namespace, text(value, "/name").unwrap_or_default());
        if !is_gateway || !listeners.is_ours(&gateway) {
            continue;
        }
        parents.push(parent(planner, listeners, kind, own, value, &gateway, &hosts));
    }
    parents
}

fn hosts(route: &Value) -> Vec<String> {
    let hosts = list(route, "/spec/hostnames").iter().filter_map(Value::as_str);
    let mut hosts: Vec<_> = hosts.map(str::to_ascii_lowercase).collect();
    if hosts.is_empty() {
        hosts.push(String::new());
    }
    hosts
}

fn parent<'v>(
    planner: &Planner<'_>,
    listeners: &Listeners,
    kind: RouteKind,
    own: &ResourceKey,
    value: &'v Value,
    gateway: &ResourceKey,
    hosts: &[String],
) -> Parent<'v> {
    let mut parent = Parent { value, attached: Vec::new(), refused: None };
    let (section, port) = (text(value, "/sectionName"), object::number(value, "/port"));
    let all = listeners.all.iter().enumerate().filter(|(_, one)| {
        one.gateway == *gateway
            && section.is_none_or(|section| section == one.name)
            && port.is_none_or(|port| port == i64::from(one.port))
    });
    let mut why = ("NoMatchingParent", "the Gateway has no such listener");
    for (index, listener) in all {
        if !listener.kinds.contains(&kind.name) || !allows(planner, listener, own) {
            if why.0 == "NoMatchingParent" {
                why = ("NotAllowedByListeners", "no listener allows the route");
            }
            continue;
        }
        let common: Vec<_> = hosts
            .iter()
            .filter(|host| host.is_empty() || names::is_host(host))
            .filter_map(|host| names::intersection(&listener.hostname, host))
            .map(str::to_owned)
            .collect();
        if common.is_empty() {
            why = ("NoMatchingListenerHostname", "no listener has a host name of the route");
        } else {
            parent.attached.push((index, common));
        }
    }
    if parent.attached.is_empty() {
        parent.refused = Some((why.0, why.1.to_owned()));
    }
    parent
}

fn allows(planner: &Planner<'_>, listener: &GatewayListener, route: &ResourceKey) -> bool {
    match text(&listener.allowed, "/namespaces/from").unwrap_or("Same") {
        "All" => true,
        "Same" => listener.gateway.namespace == route.namespace,
        "Selector" => {
            let namespace =
                planner.objects.get(ResourceKind::Namespace, &key("", &route.namespace));
            let selector = listener.allowed.pointer("/namespaces/selector");
            namespace
                .zip(selector)
                .is_some_and(|(namespace, selector)| selects(selector, namespace))
        }
        _ => false,
    }
}

/// A label selector of Kubernetes.
fn selects(selector: &Value, object: &Value) -> bool {
    let label = |name: &str| {
        texts(object, "/metadata/labels").find(|(own, _)| *own == name).map(|(_, value)| value)
    };
    let has_labels =
        texts(selector, "/matchLabels").all(|(name, value)| label(name) == Some(value));
    has_labels
        && list(selector, "/matchExpressions").iter().all(|one| {
            let own = label(text(one, "/key").unwrap_or_default());
            let values = list(one, "/values");
            let is_listed =
                own.is_some_and(|own| values.iter().any(|value| value.as_str() == Some(own)));
            match text(one, "/operator").unwrap_or_default() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => own.is_some(),
                "DoesNotExist" => own.is_none(),
                _ => false,
            }
        })
}

/// The hosts that a route is served for.
pub(super) fn served(listeners: &Listeners, parents: &[Parent<'_>]) -> Vec<ServedHost> {
    let attached = parents.iter().flat_map(|parent| &parent.attached);
    let served = attached.flat_map(|(listener, hosts)| {
        hosts.iter().flat_map(|host| listeners.served(*listener, host))
    });
    let mut served: Vec<_> = served.collect();
    served.sort();
    served.dedup();
    served
}

/// The faults of a route's rules.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteFaults {
    /// References that cannot be followed, the first of which is told.
    pub(super) unresolved: Vec<(&'static str, String)>,
    /// Rules that are not used, each with the reason.
    pub(super) dropped: Vec<String>,
    pub(super) has_valid_rule: bool,
}

impl RouteFaults {
    /// `refusal`: why the server refuses the route.
    fn verdicts(&self, parent: &Parent<'_>, refusal: Option<&str>) -> Vec<StatusCondition> {
        let mut verdicts = Vec::new();
        verdicts.push(match (&parent.refused, refusal, self.dropped.first()) {
            (Some((reason, message)), _, _) => StatusCondition::fails("Accepted", reason, message),
            (None, Some(why), _) => {
                let message = format!("the server refuses what the route becomes: {why}");
                StatusCondition::fails("Accepted", "UnsupportedValue", message)
            }
            (None, None, Some(why)) if !self.has_valid_rule => {
                StatusCondition::fails("Accepted", "UnsupportedValue", why)
            }
            _ => StatusCondition::holds("Accepted", "Accepted"),
        });
        verdicts.push(match self.unresolved.first() {
            Some((reason, message)) => StatusCondition::fails("ResolvedRefs", reason, message),
            None => StatusCondition::holds("ResolvedRefs", "ResolvedRefs"),
        });
        if self.has_valid_rule && !self.dropped.is_empty() {
            let message = format!("Dropped Rule {}", self.dropped.join("; "));
            let verdict = StatusCondition::fails("PartiallyInvalid", "UnsupportedValue", message);
            verdicts.push(StatusCondition { is_true: true, ..verdict });
        }
        verdicts
    }
}

/// Counts the route at its listeners, and writes its status.
pub(super) fn finish(
    planner: &mut Planner<'_>,
    listeners: &mut Listeners,
    kind: RouteKind,
    own: &ResourceKey,
    route: &Value,
    parents: &[Parent<'_>],
    faults: &RouteFaults,
) {
    let controller = planner.settings.controller_name.as_str();
    let is_ours = |one: &&Value| text(one, "/controllerName") == Some(controller);
    let old = list(route, "/status/parents");
    if parents.is_empty() && !old.iter().any(|one| is_ours(&one)) {
        return;
    }
    let refusal = planner.refusal(kind.kind, own);
    let mut all: Vec<Value> = old.iter().filter(|one| !is_ours(one)).cloned().collect();
    for parent in parents {
        if refusal.is_none() && (faults.has_valid_rule || faults.dropped.is_empty()) {
            for (index, _) in &parent.attached {
                listeners.attach(*index, kind.kind, own);
            }
        }
        let before = old.iter().filter(is_ours).find(|one| one["parentRef"] == *parent.value);
        let before = before.map_or(&[][..], |one| list(one, "/conditions"));
        let verdicts = faults.verdicts(parent, refusal);
        let kept: Vec<_> = before
            .iter()
            .filter(|one| text(one, "/type") != Some("PartiallyInvalid"))
            .cloned()
            .collect();
        let old = if verdicts.len() > 2 { before } else { &kept };
        let now = planner.settings.now.as_str();
        let conditions = status::conditions(old, &verdicts, object::generation(route), now);
        all.push(json!({
            "parentRef": parent.value,
            "controllerName": controller,
            "conditions": conditions,
        }));
    }
    let update = status::update(kind.kind, own, route, vec![("parents", json!(all))]);
    planner.statuses.extend(update);
}
