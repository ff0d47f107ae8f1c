//! `keepalive`: idle connections to the servers of a group.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveSettings {
    /// How many idle connections a worker keeps; 0: none.
    pub connections: u64,
    /// Whether each location has connections of its own.
    pub local: bool,
    /// How many requests are sent over a connection.
    pub requests: u64,
    /// How long requests are sent over a connection.
    pub time_ms: u64,
    /// How long a connection may be idle.
    pub timeout_ms: u64,
}

impl KeepaliveSettings {
    /// Connections are closed, as nginx does with servers without an `upstream` block.
    pub const NONE: Self =
        Self { connections: 0, local: false, requests: 0, time_ms: 0, timeout_ms: 0 };

    /// Whether a connection may carry another request.
    #[inline]
    pub(crate) fn allow_another(&self, requests: u64, age_ms: u64) -> bool {
        self.connections > 0 && requests < self.requests && age_ms <= self.time_ms
    }
}

/// The value of `keepalive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveCount {
    pub(super) connections: u64,
    pub(super) local: bool,
}

impl Value for KeepaliveCount {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let (number, name) = (from.arg(0), &from.name);
        let connections = units::number(&number.text).ok_or_else(|| {
            from.error_at(number, format!("invalid value \"{number}\" in \"{name}\" directive"))
        })?;
        let local = match from.args.get(1) {
            None => false,
            Some(word) if &*word.text == b"local" => true,
            Some(word) => {
                return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
            }
        };
        Ok(Self { connections, local })
    }
}
