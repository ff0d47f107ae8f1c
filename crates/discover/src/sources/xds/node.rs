//! The node that identifies this program to the control plane: from options, and from a file in the
//! form that bootstrap files of gRPC and Envoy have.

use std::path::Path;

use serde_json::{Map, Value};
use wire::protobuf::{write_bytes, write_fixed64, write_message, write_number};
use wire::xds::XdsNode;

/// How deep metadata may be nested.
const DEPTH_MAX: usize = 64;

/// The node encoded. `id` counts more than the one in the file, which may be missing.
pub fn encoded_node(id: Option<&str>, file: Option<&Path>) -> Result<Vec<u8>, String> {
    let read = file.map(|file| read(file).map_err(|why| format!("{}: {why}", file.display())));
    let node = read.transpose()?.unwrap_or_default();
    encode(id, &node).map_err(|why| format!("the node is invalid: {why}"))
}

/// The object of a node, which may be the value of `node` in the file.
fn read(file: &Path) -> Result<Map<String, Value>, String> {
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    match value {
        Value::Object(mut all) => match all.remove("node") {
            None => Ok(all),
            Some(Value::Object(node)) => Ok(node),
            Some(_) => Err("\"node\" is not an object".to_owned()),
        },
        _ => Err("it is not an object".to_owned()),
    }
}

fn encode(id: Option<&str>, node: &Map<String, Value>) -> Result<Vec<u8>, String> {
    let text = |of: Option<&Value>, name: &str| match of.and_then(|of| of.get(name)) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("\"{name}\" is not a text")),
    };
    let own = Value::Object(node.clone());
    let place = node.get("locality");
    let (name, cluster) = (text(Some(&own), "id")?, text(Some(&own), "cluster")?);
    let (region, zone) = (text(place, "region")?, text(place, "zone")?);
    let sub_zone = text(place, "sub_zone")?;
    let mut metadata = Vec::new();
    match node.get("metadata") {
        None => {}
        Some(Value::Object(fields)) => write_struct(fields, &mut metadata, 0)?,
        Some(_) => return Err("\"metadata\" is not an object".to_owned()),
    }
    let id = id.unwrap_or(if name.is_empty() { "weir" } else { &name });
    let node = XdsNode {
        id,
        cluster: if cluster.is_empty() { "weir" } else { &cluster },
        metadata: &metadata,
        locality: [&region, &zone, &sub_zone],
        agent: "weir-discover",
        agent_version: env!("CARGO_PKG_VERSION"),
    };
    let mut out = Vec::new();
    node.write(&mut out);
    Ok(out)
}

/// A `google.protobuf.Struct`.
fn write_struct(
    fields: &Map<String, Value>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), String> {
    for (name, value) in fields {
        let mut encoded = Vec::new();
        write_value(value, &mut encoded, depth + 1)?;
        write_message(1, out, |out| {
            write_bytes(1, name.as_bytes(), out);
            write_bytes(2, &encoded, out);
        });
    }
    Ok(())
}

/// A `google.protobuf.Value`.
fn write_value(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("metadata are nested too deeply".to_owned());
    }
    match value {
        Value::Null => write_number(1, 0, out),
        Value::Number(number) => {
            write_fixed64(2, number.as_f64().unwrap_or_default().to_bits(), out);
        }
        Value::String(text) => write_bytes(3, text.as_bytes(), out),
        Value::Bool(flag) => write_number(4, (*flag).into(), out),
        Value::Object(fields) => {
            let mut encoded = Vec::new();
            write_struct(fields, &mut encoded, depth)?;
            write_bytes(5, &encoded, out);
        }
        Value::Array(values) => {
            let mut list = Vec::new();
            for value in values {
                let mut encoded = Vec::new();
                write_value(value, &mut encoded, depth + 1)?;
                write_bytes(1, &encoded, &mut list);
            }
            write_bytes(6, &list, out);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(node: Value) -> Result<Vec<u8>, String> {
        encode(None, node.as_object().unwrap())
    }

    #[test]
    fn a_node_is_encoded_with_its_metadata() {
        let node = json!({"id": "i", "cluster": "c", "metadata": {"A": "b"}});
        let bytes = encoded(node).unwrap();
        assert!(bytes.starts_with(b"\x0a\x01i\x12\x01c\x1a\x0a\x0a\x08\x0a\x01A\x12\x03\x1a\x01b"));
        assert!(encoded(json!({})).unwrap().starts_with(b"\x0a\x04weir\x12\x04weir"));
        let all = json!({"metadata": {"a": [null, 1.5, true, {"b": {}}]}});
        assert!(encoded(all).is_ok());
        for wrong in [json!({"id": 7}), json!({"metadata": []}), json!({"locality": {"zone": 1}})] {
            assert!(encoded(wrong.clone()).is_err(), "{wrong}");
        }
        let deep = (0..70).fold(json!({}), |inner, _| json!({ "a": inner }));
        assert!(encoded(json!({ "metadata": deep })).is_err());
    }
}
