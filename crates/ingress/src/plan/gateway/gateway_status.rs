//! The status of a Gateway and of its listeners.

use serde_json::{Value, json};

use super::addresses::GatewayAddresses;
use super::listeners::GatewayListener;
use crate::plan::names::GATEWAY_GROUP;
use crate::plan::object::{self, list, text};
use crate::plan::planner::Planner;
use crate::plan::status::{self, StatusCondition};

/// The fields of the status.
pub(super) fn gateway_status(
    planner: &Planner<'_>,
    gateway: &Value,
    addresses: &GatewayAddresses,
    listeners: &[&GatewayListener],
) -> Vec<(&'static str, Value)> {
    let old = list(gateway, "/status/conditions");
    let verdicts = gateway_verdicts(gateway, addresses, listeners);
    let (generation, now) = (object::generation(gateway), planner.settings.now.as_str());
    let conditions = status::conditions(old, &verdicts, generation, now);
    let old = list(gateway, "/status/listeners");
    let listeners = listeners.iter().map(|one| listener_status(one, old, generation, now));
    let listeners: Vec<_> = listeners.collect();
    vec![
        ("addresses", json!(addresses.shown)),
        ("conditions", json!(conditions)),
        ("listeners", json!(listeners)),
    ]
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

fn gateway_verdicts(
    gateway: &Value,
    addresses: &GatewayAddresses,
    listeners: &[&GatewayListener],
) -> [StatusCondition; 2] {
    if let Some((reason, message)) = refusal(gateway) {
        return [
            StatusCondition::fails("Accepted", reason, message.clone()),
            StatusCondition::fails("Programmed", "Invalid", message),
        ];
    }
    let accepted = match listeners.iter().find(|one| !one.is_accepted()) {
        None => StatusCondition::holds("Accepted", "Accepted"),
        Some(bad) => {
            let message = format!("the listener {} is not valid", bad.name);
            let is_any = listeners.iter().any(|one| one.is_accepted());
            StatusCondition {
                is_true: is_any,
                ..StatusCondition::fails("Accepted", "ListenersNotValid", message)
            }
        }
    };
    let programmed = if let Some((reason, message)) = &addresses.fault {
        StatusCondition::fails("Programmed", reason, message)
    } else if listeners.iter().any(|one| one.is_programmed()) {
        StatusCondition::holds("Programmed", "Programmed")
    } else {
        StatusCondition::fails("Programmed", "Invalid", "no listener is valid")
    };
    [accepted, programmed]
}

fn listener_status(listener: &GatewayListener, old: &[Value], generation: i64, now: &str) -> Value {
    let of = |one: &&Value| text(one, "/name") == Some(&listener.name);
    let old = old.iter().find(of).map_or(&[][..], |one| list(one, "/conditions"));
    let kinds = listener.kinds.iter().map(|kind| json!({"group": GATEWAY_GROUP, "kind": kind}));
    let kinds: Vec<_> = kinds.collect();
    json!({
        "name": listener.name,
        "supportedKinds": kinds,
        "attachedRoutes": listener.attached.len(),
        "conditions": status::conditions(old, &listener_verdicts(listener), generation, now),
    })
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
        } else if listener.is_valid() {
            StatusCondition::fails("Programmed", "Pending", "the Gateway has no address")
        } else {
            StatusCondition::fails("Programmed", "Invalid", "the listener is not valid")
        },
    ]
}
