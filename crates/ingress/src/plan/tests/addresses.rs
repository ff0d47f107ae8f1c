//! The addresses of Gateways.

use std::net::IpAddr;

use super::*;

/// A Gateway with a listener at port 80, and its route to the Service `a`.
fn site(name: &str, created: &str, addresses: &Value, status: &Value) -> Value {
    let host = json!(["h.test"]);
    let metadata = json!({"namespace": "infra", "name": name, "creationTimestamp": created,
                          "generation": 1});
    let spec = json!({"gatewayClassName": "weir", "listeners": [http_listener()],
                      "addresses": addresses});
    let mut route = route("HTTPRoute", &host, &json!([{"backendRefs": [backend("a")]}]));
    route["metadata"]["name"] = json!(name);
    route["spec"]["parentRefs"] = json!([{"name": name, "namespace": "infra"}]);
    json!([{"kind": "Gateway", "metadata": metadata, "spec": spec, "status": status}, route])
}

fn has(addresses: &[&str]) -> Value {
    let all = addresses.iter().map(|one| json!({"type": "IPAddress", "value": one}));
    Value::from_iter(all)
}

/// The plan for a machine that has two addresses for Gateways.
fn planned_with_addresses(more: &[Value]) -> Plan {
    let mut objects = objects(more);
    objects.remove(ResourceKind::Gateway, &crate::plan::object::key("infra", "gw"));
    let gateway_addresses: Vec<IpAddr> =
        ["10.1.0.1", "10.1.0.2"].map(|one| one.parse().unwrap()).into();
    crate::plan(&objects, &Settings { gateway_addresses, ..settings() })
}

/// The addresses of a Gateway, and the reason of the condition `Programmed`.
fn state(plan: &Plan, name: &str) -> String {
    let of = |one: &&StatusUpdate| one.kind == ResourceKind::Gateway && one.key.name == name;
    let status = &plan.statuses.iter().find(of).expect("a status").status;
    let addresses = status["addresses"].as_array().unwrap();
    let addresses = addresses.iter().map(|one| one["value"].as_str().unwrap());
    let programmed = conditions(&status["conditions"]).pop().unwrap();
    let reason = programmed.split(' ').nth(1).unwrap().to_owned();
    addresses.chain([&*reason]).collect::<Vec<_>>().join(" ")
}

fn servers(plan: &Plan) -> Vec<&str> {
    plan.files.keys().filter_map(|name| name.strip_prefix("servers/")).collect()
}

#[test]
fn gateways_have_an_address_each_while_there_are_some() {
    let none = json!(null);
    let plan = planned_with_addresses(&[
        site("one", "2026-01-01T00:00:00Z", &none, &none),
        site("two", "2026-01-02T00:00:00Z", &none, &none),
        site("late", "2026-01-03T00:00:00Z", &none, &none),
    ]);
    assert_eq!(state(&plan, "one"), "10.1.0.1 Programmed");
    assert_eq!(state(&plan, "two"), "10.1.0.2 Programmed");
    assert_eq!(state(&plan, "late"), "AddressNotAssigned");
    let all = [
        "10.1.0.1/80._.conf",
        "10.1.0.1/80.h.test.conf",
        "10.1.0.2/80._.conf",
        "10.1.0.2/80.h.test.conf",
    ];
    assert_eq!(servers(&plan), all);
    let server = lines(&plan, "servers/10.1.0.2/80.h.test.conf");
    assert!(server.contains(&"listen 10.1.0.2:80;"), "{server:?}");
    let body = "include /plan/routes/httproute.shop.two/rule-1.conf;";
    assert!(server.contains(&body), "{server:?}");
    assert!(!server.iter().any(|line| line.contains("shop.one")), "{server:?}");
}

#[test]
fn a_gateway_keeps_the_address_that_it_has() {
    let none = json!(null);
    let before = json!({"addresses": has(&["10.1.0.1"])});
    let plan = planned_with_addresses(&[
        site("older", "2026-01-01T00:00:00Z", &none, &none),
        site("younger", "2026-01-02T00:00:00Z", &none, &before),
    ]);
    assert_eq!(state(&plan, "younger"), "10.1.0.1 Programmed");
    assert_eq!(state(&plan, "older"), "10.1.0.2 Programmed");
}

#[test]
fn a_gateway_gets_what_it_asks_for_or_a_reason() {
    let none = json!(null);
    let plan = planned_with_addresses(&[
        site("own", "2026-01-02T00:00:00Z", &has(&["10.1.0.1"]), &none),
        site("any", "2026-01-01T00:00:00Z", &json!([{"type": "IPAddress"}]), &none),
        site("shared", "2026-01-01T00:00:00Z", &has(&["192.0.2.1"]), &none),
        site("partly", "2026-01-03T00:00:00Z", &has(&["10.1.0.1", "127.0.0.1"]), &none),
        site("foreign", "2026-01-03T00:00:00Z", &has(&["10.9.9.9"]), &none),
    ]);
    assert_eq!(state(&plan, "own"), "10.1.0.1 Programmed");
    assert_eq!(state(&plan, "any"), "10.1.0.2 Programmed");
    assert_eq!(state(&plan, "shared"), "192.0.2.1 Programmed");
    assert_eq!(state(&plan, "partly"), "10.1.0.1 AddressNotUsable");
    assert_eq!(state(&plan, "foreign"), "AddressNotUsable");
    assert!(lines(&plan, "servers/80.h.test.conf").contains(&"listen 80;"));
    let both = file(&plan, "servers/10.1.0.1/80.h.test.conf");
    assert!(both.contains("shop.own/") && !both.contains("foreign"), "{both}");
}

#[test]
fn a_listener_that_the_server_cannot_have_is_left_out_alone() {
    let two = json!([http_listener(), {"name": "x", "port": 83, "protocol": "HTTP"}]);
    let mut settings = settings();
    let own = (ResourceKind::Gateway, crate::plan::object::key("infra", "gw"));
    settings.faults.refused.insert(own, "bind() to 0.0.0.0:83 failed".to_owned());
    let plan = crate::plan(&objects(&[gateway(&two)]), &settings);
    assert_eq!(servers(&plan), ["80._.conf"]);
    let listeners = &status(&plan, ResourceKind::Gateway).status["listeners"];
    let accepted = |number: usize| conditions(&listeners[number]["conditions"])[0].clone();
    assert_eq!(accepted(0), "Accepted=True Accepted");
    assert_eq!(accepted(1), "Accepted=False PortUnavailable");
}

#[test]
fn ports_of_different_addresses_do_not_conflict() {
    let none = json!(null);
    let mut tcp = site("tcp", "2026-01-02T00:00:00Z", &none, &none);
    tcp[0]["spec"]["listeners"] = json!([{"name": "x", "port": 80, "protocol": "TCP"}]);
    let plan = planned_with_addresses(&[site("http", "2026-01-01T00:00:00Z", &none, &none), tcp]);
    assert_eq!(state(&plan, "http"), "10.1.0.1 Programmed");
    assert_eq!(state(&plan, "tcp"), "10.1.0.2 Programmed");
    assert!(servers(&plan).contains(&"stream-10.1.0.2/80.conf"));
}
