//! The statuses of Gateways and of their listeners.

use serde_json::{Value, json};

use super::addresses::GatewayAddresses;
use super::listeners::{GatewayListener, Listeners, refusal};
use crate::ResourceKind;
use crate::plan::names::GATEWAY_GROUP;
use crate::plan::object::{self, list, number, text};
use crate::plan::planner::Planner;
use crate::plan::status::{self, StatusCondition};

pub(super) fn write_all(planner: &mut Planner<'_>, listeners: &Listeners) {
    for (key, addresses) in &listeners.gateways {
        let Some(gateway) = planner.objects.get(ResourceKind::Gateway, key) else { continue };
        let own: Vec<_> = listeners.all.iter().filter(|one| one.gateway == *key).collect();
        let fields = gateway_status(planner, gateway, addresses, &own);
        planner.statuses.extend(status::update(ResourceKind::Gateway, key, gateway, fields));
    }
}

/// The fields of the status.
fn gateway_status(
    planner: &Planner<'_>,
    gateway: &Value,
    addresses: &GatewayAddresses,
    listeners: &[&GatewayListener],
) -> Vec<(&'static str, Value)> {
    let old = list(gateway, "/status/conditions");
    let (generation, now) = (object::generation(gateway), planner.settings.now.as_str());
    let programmed = programmed(old, generation, planner.settings.faults.last.as_deref());
    let verdicts = gateway_verdicts(gateway, addresses, listeners, programmed.clone());
    let conditions = status::conditions(old, &verdicts, generation, now);
    let old = list(gateway, "/status/listeners");
    let listeners: Vec<_> = listeners
        .iter()
        .map(|listener| {
            let of = |one: &&Value| text(one, "/name") == Some(&listener.name);
            let old = old.iter().find(of).map_or(&[][..], |one| list(one, "/conditions"));
            let verdicts = listener_verdicts(listener, programmed.clone());
            listener_status(listener, status::conditions(old, &verdicts, generation, now))
        })
        .collect();
    vec![
        ("addresses", json!(addresses.shown)),
        ("conditions", json!(conditions)),
        ("listeners", json!(listeners)),
    ]
}

fn gateway_verdicts(
    gateway: &Value,
    addresses: &GatewayAddresses,
    listeners: &[&GatewayListener],
    programmed: StatusCondition,
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
    let is_any = listeners.iter().any(|one| one.is_programmed());
    let programmed = if let Some((reason, message)) = &addresses.fault {
        StatusCondition::fails("Programmed", reason, message)
    } else if is_any {
        programmed
    } else {
        StatusCondition::fails("Programmed", "Invalid", "no listener is valid")
    };
    [accepted, programmed]
}

/// Whether what is sound is in use: `fault` is why the last plan is not. What was programmed
/// before, and has not changed, still is.
fn programmed(old: &[Value], generation: i64, fault: Option<&str>) -> StatusCondition {
    let is_old = old.iter().any(|one| {
        text(one, "/type") == Some("Programmed")
            && text(one, "/status") == Some("True")
            && number(one, "/observedGeneration") == Some(generation)
    });
    match fault.filter(|_| !is_old) {
        None => StatusCondition::holds("Programmed", "Programmed"),
        Some(why) => StatusCondition::fails("Programmed", "Pending", why),
    }
}

fn listener_status(listener: &GatewayListener, conditions: Vec<Value>) -> Value {
    let kinds = listener.kinds.iter().map(|kind| json!({"group": GATEWAY_GROUP, "kind": kind}));
    let kinds: Vec<_> = kinds.collect();
    json!({
        "name": listener.name,
        "supportedKinds": kinds,
        "attachedRoutes": listener.attached.len(),
        "conditions": conditions,
    })
}

fn listener_verdicts(
    listener: &GatewayListener,
    programmed: StatusCondition,
) -> [StatusCondition; 4] {
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
            programmed
        } else if listener.is_valid() {
            StatusCondition::fails("Programmed", "Pending", "the Gateway has no address")
        } else {
            StatusCondition::fails("Programmed", "Invalid", "the listener is not valid")
        },
    ]
}
