//! Objects in, lines and statuses out.

mod addresses;
mod gateway;
mod hostile;
mod ingress;

use serde_json::{Value, json};

use super::dry_run::insert;
use super::fuzz::{check, settings};
use super::{Plan, Settings, StatusUpdate};
use crate::{Objects, ResourceKind};

/// The objects with what most tests need: a class of each kind, a Gateway at port 80 for all
/// namespaces, and the Services `a`, `b` and `c` of the namespace `shop`.
fn objects(more: &[Value]) -> Objects {
    let mut objects = Objects::default();
    let all = json!([
        {"kind": "GatewayClass", "metadata": {"name": "weir"},
         "spec": {"controllerName": settings().controller_name}},
        {"kind": "IngressClass", "metadata": {"name": "weir"},
         "spec": {"controller": settings().controller_name}},
        gateway(&json!([http_listener()])),
        service("a"), slice("a", &json!([{"addresses": ["10.0.0.1"]}])),
        service("b"), slice("b", &json!([{"addresses": ["10.0.0.2"]}])),
        service("c"),
    ]);
    insert(all, &mut objects).unwrap();
    insert(Value::from(more), &mut objects).unwrap();
    objects
}

/// The plan, which has been checked to be a configuration.
fn planned(more: &[Value]) -> Plan {
    check(&objects(more))
}

fn gateway(listeners: &Value) -> Value {
    json!({"kind": "Gateway", "metadata": {"namespace": "infra", "name": "gw", "generation": 3},
           "spec": {"gatewayClassName": "weir", "listeners": listeners}})
}

fn http_listener() -> Value {
    json!({"name": "http", "port": 80, "protocol": "HTTP",
           "allowedRoutes": {"namespaces": {"from": "All"}}})
}

fn service(name: &str) -> Value {
    json!({"kind": "Service", "metadata": {"namespace": "shop", "name": name},
           "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "web"},
                              {"name": "other", "port": 81}]}})
}

fn slice(service: &str, endpoints: &Value) -> Value {
    json!({"kind": "EndpointSlice",
           "metadata": {"namespace": "shop", "name": format!("{service}-1"),
                        "labels": {"kubernetes.io/service-name": service}},
           "endpoints": endpoints,
           "ports": [{"name": "http", "port": 8080}, {"name": "other", "port": 9090}]})
}

/// A route of the namespace `shop` to the Gateway.
fn route(kind: &str, hosts: &Value, rules: &Value) -> Value {
    json!({"kind": kind, "metadata": {"namespace": "shop", "name": "r", "generation": 7},
           "spec": {"parentRefs": [{"name": "gw", "namespace": "infra"}],
                    "hostnames": hosts, "rules": rules}})
}

fn backend(name: &str) -> Value {
    json!({"name": name, "port": 80})
}

fn secret(name: &str, certificate: &str, key: &str) -> Value {
    let base64 = |file: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../net/src/tls/testdata");
        let bytes = std::fs::read(format!("{folder}/{file}")).unwrap();
        let mut out = Vec::new();
        wire::base64::encode(&bytes, &mut out);
        String::from_utf8(out).unwrap()
    };
    json!({"kind": "Secret", "metadata": {"namespace": "infra", "name": name},
           "data": {"tls.crt": base64(certificate), "tls.key": base64(key)}})
}

fn file<'p>(plan: &'p Plan, name: &str) -> &'p str {
    let bytes = plan.files.get(name);
    let bytes = bytes.unwrap_or_else(|| panic!("no {name} in {:?}", plan.files.keys()));
    std::str::from_utf8(bytes).unwrap()
}

/// The lines of a file, without their indentation.
fn lines<'p>(plan: &'p Plan, name: &str) -> Vec<&'p str> {
    file(plan, name).lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn status(plan: &Plan, kind: ResourceKind) -> &StatusUpdate {
    plan.statuses.iter().find(|one| one.kind == kind).expect("a status")
}

/// `TYPE=STATUS REASON`, sorted.
fn conditions(conditions: &Value) -> Vec<String> {
    let show = |one: &Value| {
        let part = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        format!("{}={} {}", part("type"), part("status"), part("reason"))
    };
    let mut all: Vec<_> = conditions.as_array().unwrap().iter().map(show).collect();
    all.sort();
    all
}
