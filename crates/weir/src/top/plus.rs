//! NGINX Plus's API, version 9, in the form of Weir's tree.

use serde_json::{Map, Value, json};

use super::growth::{at, number};

/// What is read. A server answers 404 for what it does not have.
pub(super) const PATHS: [&str; 8] = [
    "nginx",
    "connections",
    "http/requests",
    "http/server_zones",
    "http/location_zones",
    "http/upstreams",
    "http/caches",
    "workers",
];

pub(super) fn tree(parts: Vec<(&str, Value)>) -> Value {
    let mut tree = Value::Object(Map::new());
    for (path, part) in parts {
        let part = match path {
            "http/server_zones" | "http/location_zones" => each(part, zone),
            "http/upstreams" => each(part, group),
            // It has other numbers than Weir's.
            "workers" => continue,
            _ => part,
        };
        match path.split_once('/') {
            Some((outer, inner)) => tree[outer][inner] = part,
            None => tree[path] = part,
        }
    }
    tree
}

fn each(objects: Value, change: fn(&Value) -> Value) -> Value {
    let Value::Object(objects) = objects else { return Value::Null };
    Value::Object(objects.into_iter().map(|(name, value)| (name, change(&value))).collect())
}

fn zone(zone: &Value) -> Value {
    json!({
        "requests": {
            "total": zone.get("requests"),
            "processing": zone.get("processing"),
            "discarded": zone.get("discarded"),
        },
        "responses": responses(zone),
        "data": { "received": zone.get("received"), "sent": zone.get("sent") },
        "ssl": zone.get("ssl"),
    })
}

/// By code where codes are counted, or by class.
fn responses(object: &Value) -> Value {
    if let Some(codes) = at(object, &["responses", "codes"]) {
        return codes.clone();
    }
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    let pairs = classes.map(|class| (class.into(), number(object, &["responses", class]).into()));
    Value::Object(pairs.into_iter().collect())
}

fn group(group: &Value) -> Value {
    let peers = group.get("peers").and_then(Value::as_array);
    let peers = peers.into_iter().flatten().map(|peer| {
        let name = peer.get("server").and_then(Value::as_str).unwrap_or("?");
        (name.to_owned(), server(peer))
    });
    let mut made = json!({ "peers": peers.collect::<Map<_, _>>() });
    for name in ["zone", "keepalive"] {
        made[name] = group.get(name).cloned().unwrap_or_default();
    }
    if let Some(queue) = group.get("queue") {
        made["queue"] = json!({
            "length": queue.get("size"),
            "max_length": queue.get("max_size"),
            "overflows": queue.get("overflows"),
        });
    }
    made
}

fn server(peer: &Value) -> Value {
    json!({
        "state": peer.get("state"),
        "selected": { "current": peer.get("active"), "total": peer.get("requests") },
        "limit": peer.get("max_conns"),
        "responses": responses(peer),
        "health": {
            "fails": peer.get("fails"),
            "response_time": peer.get("response_time"),
            "probes": {
                "count": at(peer, &["health_checks", "checks"]),
                "fails": at(peer, &["health_checks", "fails"]),
                "last_ok": at(peer, &["health_checks", "last_passed"]),
            },
        },
    })
}
