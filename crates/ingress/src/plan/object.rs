//! Reading parts of objects: a part that is missing, or of another type, is `None` or empty.

use serde_json::Value;

use crate::ResourceKey;

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer)?.as_i64()
}

/// The entries of a map of texts, such as labels or annotations.
pub(crate) fn texts<'v>(
    value: &'v Value,
    pointer: &str,
) -> impl Iterator<Item = (&'v str, &'v str)> {
    let map = value.pointer(pointer).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

pub(crate) fn port(value: &Value, pointer: &str) -> Option<u16> {
    u16::try_from(number(value, pointer)?).ok().filter(|port| *port > 0)
}

pub(crate) fn generation(object: &Value) -> i64 {
    number(object, "/metadata/generation").unwrap_or_default()
}

/// RFC 3339 in UTC, so that the order of texts is the order of times.
pub(crate) fn created(object: &Value) -> &str {
    text(object, "/metadata/creationTimestamp").unwrap_or_default()
}

pub(crate) fn key(namespace: &str, name: &str) -> ResourceKey {
    ResourceKey { namespace: namespace.to_owned(), name: name.to_owned() }
}
