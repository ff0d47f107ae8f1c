//! The file of `state=`: a JSON object with one entry a line, sorted by key.
//!
//! ```text
//! {
//! "192.0.2.7": "1",
//! "198.51.100.0/24": {"value": "1", "expires_at": 1795722245000}
//! }
//! ```
//!
//! An entry that ends has its time in Unix milliseconds, which a restart of the machine does not
//! change. The text depends only on the content, so that two states can be compared line by line.

use std::fmt;
use std::sync::Arc;

use conf::FILE_BYTES_MAX;
use wire::json::{self, JsonLimits, JsonMember, JsonValue, write_text};

use super::change::KeyvalPair;
use super::entry::KeyvalEntry;
use super::table::KeyvalTable;

pub(super) const STATE_LIMITS: JsonLimits =
    JsonLimits { bytes_max: FILE_BYTES_MAX, depth_max: 3, values_max: 1 << 24 };

/// What is wrong with a state file.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyvalStateError {
    pub message: String,
    pub line: usize,
}

/// A moment by both clocks: [`net::clock::monotonic_ms`] and [`net::clock::unix_ms`].
#[derive(Clone, Copy, Debug)]
pub struct KeyvalNow {
    pub monotonic_ms: u64,
    pub unix_ms: u64,
}

impl KeyvalNow {
    /// As of the worker's last wake-up.
    pub fn read() -> Self {
        let (monotonic_ms, unix_ms) = (net::clock::monotonic_ms(), net::clock::unix_ms());
        Self { monotonic_ms, unix_ms }
    }
}

impl KeyvalTable {
    /// The text of the state file.
    pub fn to_state(&self, now: KeyvalNow) -> Vec<u8> {
        let mut entries: Vec<Arc<KeyvalEntry>> = self.live_entries(now.monotonic_ms).collect();
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut out = b"{".to_vec();
        for (number, entry) in entries.iter().enumerate() {
            out.extend_from_slice(if number == 0 { b"\n" } else { b",\n" });
            write_entry(&entry.key, &entry.value, entry.deadline_ms, now, &mut out);
        }
        out.extend_from_slice(b"\n}\n");
        out
    }
}

/// Writes a key with its value, and with its time if it ends.
pub(super) fn write_entry(
    key: &[u8],
    value: &[u8],
    deadline_ms: Option<u64>,
    now: KeyvalNow,
    out: &mut Vec<u8>,
) {
    write_text(key, out);
    out.extend_from_slice(b": ");
    let Some(deadline_ms) = deadline_ms else { return write_text(value, out) };
    let left_ms = deadline_ms.saturating_sub(now.monotonic_ms);
    out.extend_from_slice(b"{\"value\": ");
    write_text(value, out);
    let expires_at = now.unix_ms.saturating_add(left_ms);
    out.extend_from_slice(format!(", \"expires_at\": {expires_at}}}").as_bytes());
}

/// Puts the content of a state file into a table. Entries that have ended are left out.
pub fn read_state(
    text: &[u8],
    table: &mut KeyvalTable,
    now: KeyvalNow,
) -> Result<(), KeyvalStateError> {
    let value = json::parse(text, STATE_LIMITS).map_err(|error| KeyvalStateError {
        message: error.problem.to_string(),
        line: error.position(text).line,
    })?;
    let JsonValue::Object(object) = value else {
        let message = format!("{} in place of an object", value.kind());
        return Err(KeyvalStateError { message, line: 1 });
    };
    for member in &object {
        let at_line = |message: String| {
            let line = json::position(text, member.at).line;
            KeyvalStateError { message, line }
        };
        let Some(pair) = read_pair(member, now).map_err(at_line)? else { continue };
        if table.get(&pair.key, now.monotonic_ms).is_some() {
            return Err(at_line(format!("key \"{}\" is there twice", member.name)));
        }
        table.put(&pair, now.monotonic_ms).map_err(|refused| at_line(refused.text))?;
    }
    Ok(())
}

/// An entry; `None` if it has ended.
pub(super) fn read_pair(
    member: &JsonMember<'_>,
    now: KeyvalNow,
) -> Result<Option<KeyvalPair>, String> {
    let (value, expires_at) = read_value(member)?;
    let left_ms = expires_at.map(|at| at.saturating_sub(now.unix_ms));
    let deadline_ms = left_ms.map(|left_ms| now.monotonic_ms.saturating_add(left_ms));
    let (key, value) = (member.name.as_bytes().into(), value.as_bytes().into());
    Ok((left_ms != Some(0)).then_some(KeyvalPair { key, value, deadline_ms }))
}

/// The value, and when it ends in Unix milliseconds.
fn read_value<'m>(member: &'m JsonMember<'_>) -> Result<(&'m str, Option<u64>), String> {
    let key = &member.name;
    let object = match &member.value {
        JsonValue::Text(text) => return Ok((text, None)),
        JsonValue::Object(object) => object,
        other => return Err(format!("the value of key \"{key}\" is {}, not a text", other.kind())),
    };
    if let Some(unknown) = object.iter().find(|part| !is_part(&part.name)) {
        return Err(format!("unknown parameter \"{}\" of key \"{key}\"", unknown.name));
    }
    let value = object.get("value").and_then(JsonValue::as_text);
    let expires_at = object.get("expires_at").and_then(JsonValue::as_u64);
    match (value, expires_at, object.get("expires_at")) {
        (None, ..) => Err(format!("key \"{key}\" has no text as its \"value\"")),
        (_, None, Some(_)) => {
            Err(format!("\"expires_at\" of key \"{key}\" is no number of milliseconds"))
        }
        (Some(value), expires_at, _) => Ok((value, expires_at)),
    }
}

fn is_part(name: &str) -> bool {
    matches!(name, "value" | "expires_at")
}

impl fmt::Display for KeyvalStateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in line {}", self.message, self.line)
    }
}
