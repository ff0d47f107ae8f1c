//! A document as values.

use alloc::borrow::Cow;
use alloc::vec::{self, Vec};
use core::slice;

/// A value; texts without escapes are slices of the input.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue<'a> {
    Null,
    Bool(bool),
    Number(JsonNumber<'a>),
    Text(Cow<'a, str>),
    List(Vec<JsonValue<'a>>),
    Object(JsonObject<'a>),
}

/// A number as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonNumber<'a>(pub(super) &'a str);

/// An object. Its members have different names and are sorted by them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonObject<'a>(pub(super) Vec<JsonMember<'a>>);

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonMember<'a> {
    pub name: Cow<'a, str>,
    pub value: JsonValue<'a>,
    /// The offset of the name in the input.
    pub at: usize,
}

impl<'a> JsonValue<'a> {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// A number without sign, fraction and exponent.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[JsonValue<'a>]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&JsonObject<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The kind in words, for messages: `a number`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl<'a> JsonNumber<'a> {
    pub fn as_str(&self) -> &'a str {
        self.0
    }

    /// Its value, if it has neither sign, fraction nor exponent and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

impl<'a> JsonObject<'a> {
    pub fn get(&self, name: &str) -> Option<&JsonValue<'a>> {
        let found = self.0.binary_search_by(|member| (*member.name).cmp(name)).ok()?;
        Some(&self.0[found].value)
    }

    pub fn iter(&self) -> slice::Iter<'_, JsonMember<'a>> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for JsonObject<'a> {
    type Item = JsonMember<'a>;
    type IntoIter = vec::IntoIter<JsonMember<'a>>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'o, 'a> IntoIterator for &'o JsonObject<'a> {
    type Item = &'o JsonMember<'a>;
    type IntoIter = slice::Iter<'o, JsonMember<'a>>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
