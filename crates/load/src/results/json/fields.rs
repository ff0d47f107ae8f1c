//! JSON to the values that a field is to have, with errors that say which field it was.
//!
//! The text of an error goes on from a name: ` is not a number`, or `.name is not a number`.

use std::borrow::Cow;

use super::{Json, WHOLE_MAX};

pub(super) struct MapFields<'j>(&'j [(Cow<'static, str>, Json)]);

impl<'j> MapFields<'j> {
    pub(super) fn of(json: &'j Json) -> Result<Self, String> {
        match json {
            Json::Map(fields) => Ok(Self(fields)),
            _ => Err(": expected an object".to_owned()),
        }
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Json) -> Result<T, String>,
    ) -> Result<T, String> {
        let field = self.0.iter().find(|(known, _)| known == name);
        let (_, value) = field.ok_or_else(|| format!(".{name} is missing"))?;
        read(value).map_err(|what| format!(".{name}{what}"))
    }

    /// The value of a field, if it is there.
    pub(super) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Json) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        match self.0.iter().any(|(known, _)| known == name) {
            true => self.read(name, read).map(Some),
            false => Ok(None),
        }
    }

    /// A field that has to have this value.
    pub(super) fn is(&self, name: &str, expected: &str) -> Result<(), String> {
        self.read(name, |json| match json {
            Json::Text(text) if text == expected => Ok(()),
            _ => Err(format!(": expected \"{expected}\"")),
        })
    }
}

/// A number that is not negative.
pub(super) fn number(json: &Json) -> Result<f64, String> {
    match json {
        Json::Number(number) if *number >= 0.0 => Ok(*number),
        _ => Err(": expected a number of 0 or more".to_owned()),
    }
}

pub(super) fn whole(json: &Json) -> Result<u64, String> {
    match json {
        Json::Number(n) if *n >= 0.0 && n.fract() == 0.0 && *n <= WHOLE_MAX as f64 => Ok(*n as u64),
        _ => Err(": expected a whole number, or the number is too large".to_owned()),
    }
}

pub(super) fn text(json: &Json) -> Result<String, String> {
    match json {
        Json::Text(text) => Ok(text.clone()),
        _ => Err(": expected a string".to_owned()),
    }
}

pub(super) fn truth(json: &Json) -> Result<bool, String> {
    match json {
        Json::Bool(value) => Ok(*value),
        _ => Err(": expected true or false".to_owned()),
    }
}

/// The fields of a map whose names are data.
pub(super) fn named<T>(
    json: &Json,
    each: impl Fn(&str, &Json) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let MapFields(fields) = MapFields::of(json)?;
    let field = |(name, value): &(Cow<'static, str>, Json)| {
        each(name, value).map_err(|what| format!(".{name}{what}"))
    };
    fields.iter().map(field).collect()
}

pub(super) fn list<T>(
    json: &Json,
    each: impl Fn(&Json) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let Json::List(items) = json else { return Err(": expected a list".to_owned()) };
    let item = |(place, item)| each(item).map_err(|what| format!("[{place}]{what}"));
    items.iter().enumerate().map(item).collect()
}
