//! Writes JSON, and nothing else: what `bench --json` keeps.

use std::fmt::{self, Display, Formatter};

/// A JSON value; the fields of a map keep their order.
pub(crate) enum Json {
    Null,
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(&'static str, Json)>),
}

impl From<f64> for Json {
    fn from(number: f64) -> Self {
        // JSON has no infinity and no NaN.
        if number.is_finite() { Self::Number(number) } else { Self::Null }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Display for Json {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value() {
        let value = Json::Map(vec![
            ("text", "a \"b\" \\ \n".into()),
            ("list", vec![1.5, f64::INFINITY].into()),
            ("none", None::<f64>.into()),
            ("empty", Json::List(Vec::new())),
        ]);
        let expected =
            r#"{"text": "a \"b\" \\ \u000a", "list": [1.5, null], "none": null, "empty": []}"#;
        assert_eq!(value.to_string(), expected);
    }
}
