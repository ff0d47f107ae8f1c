//! The interface of sessions for the access log.

use crate::Session;

/// A variable that the log computes itself.
pub type LogVariable<X> = fn(&X, &mut Vec<u8>);

/// A field of the format `json`.
pub struct JsonColumn {
    pub(super) name: &'static str,
    pub(super) kind: JsonType,
    pub(super) variable: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonType {
    Text,
    Number,
}

impl JsonColumn {
    /// A string.
    pub const fn text(name: &'static str, variable: &'static str) -> Self {
        Self { name, kind: JsonType::Text, variable }
    }

    /// A number. If the variable has several, one for each server tried, it is the last one.
    pub const fn number(name: &'static str, variable: &'static str) -> Self {
        Self { name, kind: JsonType::Number, variable }
    }
}

/// A session that is logged when it ends.
pub trait LoggedSession: Session {
    /// The variables that the log computes itself.
    const OWN: &'static [(&'static [u8], LogVariable<Self>)];
    /// The format `combined`, if it is built in.
    const COMBINED: Option<&'static str>;
    /// The format `json`: its fields after the time.
    const JSON: &'static [JsonColumn];

    /// Whether logs whose paths have variables may be written; if not, the session has logged the
    /// reason.
    fn admits_log_paths(&mut self) -> bool {
        true
    }
}
