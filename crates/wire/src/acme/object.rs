//! Objects of the protocol: a reply's body, read with limits.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::reply::{REPLY_BYTES_MAX, URL_BYTES_MAX};
use crate::json::{self, JsonLimits, JsonObject, JsonValue};

const LIMITS: JsonLimits =
    JsonLimits { bytes_max: REPLY_BYTES_MAX, depth_max: 16, values_max: 10_000 };

/// Reads a body. The error says what it is not.
pub(super) fn parse(body: &[u8]) -> Result<JsonObject<'_>, String> {
    match json::parse(body, LIMITS) {
        Ok(JsonValue::Object(object)) => Ok(object),
        Ok(other) => Err(alloc::format!("{} instead of an object", other.kind())),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn text<'o>(object: &'o JsonObject<'_>, name: &str) -> Option<&'o str> {
    object.get(name)?.as_text()
}

pub(super) fn object<'o, 'a>(object: &'o JsonObject<'a>, name: &str) -> Option<&'o JsonObject<'a>> {
    object.get(name)?.as_object()
}

/// The values of a list; nothing if there is no such list.
pub(super) fn list<'o, 'a>(object: &'o JsonObject<'a>, name: &str) -> &'o [JsonValue<'a>] {
    match object.get(name) {
        Some(JsonValue::List(list)) => list,
        _ => &[],
    }
}

/// A member that is a URL and can be requested. Certificates are only as safe as the way to their
/// authority, so only a directory without TLS may name URLs without it.
pub(super) fn url(object: &JsonObject<'_>, name: &str, directory: &str) -> Option<String> {
    checked_url(text(object, name)?, directory)
}

pub(super) fn checked_url(url: &str, directory: &str) -> Option<String> {
    let is_secured = url.starts_with("https://");
    let may_be_plain = directory.starts_with("http://") && url.starts_with("http://");
    let is_url = url.len() <= URL_BYTES_MAX && url.bytes().all(|byte| byte.is_ascii_graphic());
    (is_url && (is_secured || may_be_plain)).then(|| url.to_string())
}

/// Names and the values behind them, as JSON.
pub(super) fn written(members: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in members {
        out.extend_from_slice(if out.is_empty() { b"{\"" } else { b",\"" });
        for part in [name, "\":", value] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    if out.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
    out
}
