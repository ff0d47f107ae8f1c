//! Requests of the API: what a body says.

use wire::json::{self, JsonLimits, JsonMember, JsonObject, JsonValue};

use super::refusal::KeyvalRefusal;
use crate::steering::CHANGE_BODY_MAX;

/// The longest body of a request.
pub const KEYVAL_BODY_MAX: usize = CHANGE_BODY_MAX;

/// Bodies are objects of texts or of objects.
const LIMITS: JsonLimits =
    JsonLimits { bytes_max: KEYVAL_BODY_MAX, depth_max: 4, values_max: 100_000 };

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyvalRequest {
    /// `POST`: new entries; several only in an empty zone.
    Add(Vec<RequestedPair>),
    /// `PATCH` of an entry; without a value, only its time changes.
    Modify { key: Box<[u8]>, value: Option<Box<[u8]>>, expire_ms: Option<u64> },
    /// `PATCH` with the value `null`.
    Remove(Box<[u8]>),
    /// `DELETE`
    Clear,
}

/// An entry that a request adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedPair {
    pub key: Box<[u8]>,
    pub value: Box<[u8]>,
    /// Takes precedence over the zone's `timeout`.
    pub expire_ms: Option<u64>,
}

/// The value of a member: `"text"`, `{"value":"text","expire":1000}` or `null`.
struct ReadValue<'m> {
    text: Option<&'m str>,
    expire_ms: Option<u64>,
    is_null: bool,
}

impl KeyvalRequest {
    /// Reads the body of a `POST` request.
    pub fn add(body: &[u8]) -> Result<Self, KeyvalRefusal> {
        let object = read_object(body)?;
        let pairs = object.iter().map(|member| {
            let ReadValue { text, expire_ms, .. } = read_value(member)?;
            let Some(value) = text else {
                let text = format!("the value of key \"{}\" is missing", member.name);
                return Err(KeyvalRefusal::format(text));
            };
            let key = member.name.as_bytes().into();
            Ok(RequestedPair { key, value: value.as_bytes().into(), expire_ms })
        });
        Ok(Self::Add(pairs.collect::<Result<_, _>>()?))
    }

    /// Reads the body of a `PATCH` request.
    pub fn modify(body: &[u8]) -> Result<Self, KeyvalRefusal> {
        let object = read_object(body)?;
        let mut members = object.iter();
        let (Some(member), None) = (members.next(), members.next()) else {
            return Err(KeyvalRefusal::format("only one key can be updated"));
        };
        let key = member.name.as_bytes().into();
        let ReadValue { text, expire_ms, is_null } = read_value(member)?;
        if is_null {
            return Ok(Self::Remove(key));
        }
        if text.is_none() && expire_ms.is_none() {
            let text = format!("neither a value nor \"expire\" of key \"{}\"", member.name);
            return Err(KeyvalRefusal::format(text));
        }
        let value = text.map(|text| text.as_bytes().into());
        Ok(Self::Modify { key, value, expire_ms })
    }
}

/// An object with at least one member.
fn read_object(body: &[u8]) -> Result<JsonObject<'_>, KeyvalRefusal> {
    let value = json::parse(body, LIMITS).map_err(|error| {
        let json::JsonPosition { line, column } = error.position(body);
        let text = format!("JSON error: {}, line {line}, column {column}", error.problem);
        KeyvalRefusal::new(415, "JsonError", text)
    })?;
    match value {
        JsonValue::Object(object) if object.is_empty() => {
            Err(KeyvalRefusal::format("key required: the object is empty"))
        }
        JsonValue::Object(object) => Ok(object),
        other => {
            let text = format!("invalid JSON: {} in place of an object", other.kind());
            Err(KeyvalRefusal::format(text))
        }
    }
}

fn read_value<'m>(member: &'m JsonMember<'_>) -> Result<ReadValue<'m>, KeyvalRefusal> {
    let mut read = ReadValue { text: None, expire_ms: None, is_null: false };
    match &member.value {
        JsonValue::Text(text) => read.text = Some(text),
        JsonValue::Null => read.is_null = true,
        JsonValue::Object(object) => {
            for part in object {
                read.part(&member.name, part)?;
            }
        }
        other => return Err(wrong_kind(&member.name, "value", "a text", other)),
    }
    Ok(read)
}

impl<'m> ReadValue<'m> {
    fn part(&mut self, key: &str, part: &'m JsonMember<'_>) -> Result<(), KeyvalRefusal> {
        match (&*part.name, &part.value) {
            ("value", JsonValue::Text(text)) => self.text = Some(text),
            ("value", other) => return Err(wrong_kind(key, "value", "a text", other)),
            ("expire", value) => {
                let expire_ms = value.as_u64().filter(|expire_ms| *expire_ms > 0);
                let what = "a number of milliseconds above 0";
                let wrong = || wrong_kind(key, "\"expire\"", what, value);
                self.expire_ms = Some(expire_ms.ok_or_else(wrong)?);
            }
            (name, _) => {
                let text = format!("unknown parameter \"{name}\" of key \"{key}\"");
                return Err(KeyvalRefusal::format(text));
            }
        }
        Ok(())
    }
}

fn wrong_kind(key: &str, part: &str, expected: &str, found: &JsonValue<'_>) -> KeyvalRefusal {
    let found = match found {
        JsonValue::Number(number) => number.as_str(),
        other => other.kind(),
    };
    KeyvalRefusal::format(format!("the {part} of key \"{key}\" must be {expected}, not {found}"))
}
