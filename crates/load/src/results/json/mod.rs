//! Results as JSON: a value, its text ([`read`] is the way back), and what of a run stands where.
//!
//! Just as much of JSON as is needed, but of that all of RFC 8259; docs/load-json.md says what the
//! fields mean. What is written is read back as it was, which a fuzz target holds.

mod fields;
mod parse;
mod run;

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

pub use run::{read, write, write_turns};

/// A JSON value; the fields of a map keep their order.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(Cow<'static, str>, Json)>),
}

/// Every whole number up to here is exact in a double, which is what readers of JSON use.
const WHOLE_MAX: u64 = 1 << 53;

impl Json {
    fn map<const N: usize>(fields: [(&'static str, Self); N]) -> Self {
        Self::Map(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// One more field of a map.
    fn push(&mut self, name: impl Into<Cow<'static, str>>, value: Self) {
        if let Self::Map(fields) = self {
            fields.push((name.into(), value));
        }
    }
}

impl From<f64> for Json {
    fn from(number: f64) -> Self {
        // JSON has no infinity and no NaN.
        if number.is_finite() { Self::Number(number) } else { Self::Null }
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Number(number.min(WHOLE_MAX) as f64)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl FromIterator<Self> for Json {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        Self::List(items.into_iter().collect())
    }
}

impl Display for Json {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Text(text) => quoted(out, text),
            Self::List(items) => {
                out.write_str("[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if place == 0 { "" } else { ", " })?;
                }
                out.write_str("]")
            }
            Self::Map(fields) => {
                out.write_str("{")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    out.write_str(if place == 0 { "" } else { ", " })?;
                    quoted(out, name)?;
                    write!(out, ": {value}")?;
                }
                out.write_str("}")
            }
        }
    }
}

/// RFC 8259 section 7: the quote, the backslash and the control characters are escaped.
fn quoted(out: &mut Formatter<'_>, text: &str) -> fmt::Result {
    out.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            '\0'..='\x1f' => write!(out, "\\u{:04x}", u32::from(character))?,
            _ => write!(out, "{character}")?,
        }
    }
    out.write_str("\"")
}
