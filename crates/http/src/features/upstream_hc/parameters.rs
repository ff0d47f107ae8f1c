//! The parameters of `health_check`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::upstream::health::{Begin, CheckTerms};
use ::upstream::{Group, Groups};
use conf::lacking::Class;
use conf::{Directive, Error, Inherited, Load, Result, Value, Word, units};

use crate::health::matching::{Match, Matches};

/// The value of `health_check`.
#[derive(Clone)]
pub struct HealthCheckLine {
    pub(super) terms: CheckTerms,
    pub(super) uri: Arc<[u8]>,
    pub(super) port: Option<u16>,
    pub(super) keepalive_time_ms: u64,
    matching: Option<Word>,
    from: Directive,
}

impl Value for HealthCheckLine {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut check = Self {
            terms: CheckTerms {
                interval_ms: 5000,
                jitter_ms: 0,
                fails: 1,
                passes: 1,
                begin: Begin::Healthy,
            },
            uri: b"/"[..].into(),
            port: None,
            keepalive_time_ms: 0,
            matching: None,
            from: from.clone(),
        };
        for word in &from.args {
            check.parameter(word)?;
        }
        Ok(check)
    }
}

impl HealthCheckLine {
    fn parameter(&mut self, word: &Word) -> Result<()> {
        let from = &self.from;
        let invalid = || from.error_at(word, format!("invalid parameter \"{word}\""));
        let (name, value) = match word.text.iter().position(|&byte| byte == b'=') {
            Some(at) => word.text.split_at(at + 1),
            None => (&word.text[..], &b""[..]),
        };
        let time = || units::milliseconds(value).ok_or_else(invalid);
        let positive = |number: Option<u64>| number.filter(|number| *number > 0);
        let count = || {
            let number = positive(units::number(value));
            number.and_then(|number| u32::try_from(number).ok()).ok_or_else(invalid)
        };
        match name {
            b"interval=" => {
                self.terms.interval_ms = positive(Some(time()?)).ok_or_else(invalid)?;
            }
            b"jitter=" => self.terms.jitter_ms = time()?,
            b"fails=" => self.terms.fails = count()?,
            b"passes=" => self.terms.passes = count()?,
            b"uri=" if is_path(value) => self.uri = value.into(),
            b"port=" => self.port = Some(u16::try_from(count()?).map_err(|_| invalid())?),
            b"keepalive_time=" => self.keepalive_time_ms = time()?,
            b"match=" if !value.is_empty() => self.matching = Some(word.clone()),
            b"mandatory" => self.terms.begin = Begin::Checking { persistent: false },
            b"persistent" => match self.terms.begin {
                Begin::Checking { .. } => {
                    self.terms.begin = Begin::Checking { persistent: true };
                }
                _ => return Err(from.error_at(word, "\"persistent\" requires \"mandatory\"")),
            },
            b"type=" if value == b"grpc" => {
                let why = "health checks of gRPC servers are not supported";
                return Err(from.error_at(word, why).lacks(Class::Behavior));
            }
            _ => return Err(invalid()),
        }
        Ok(())
    }

    /// An error about the directive.
    pub(super) fn refuse(&self, reason: &str) -> Error {
        self.from.refuse(reason)
    }

    /// Whether a group is an `upstream` block's.
    pub(super) fn is_named(&self, group: &Arc<Group>, load: &mut Load<'_>) -> bool {
        let named = load.own.of::<Groups>().find(group.name());
        named.is_some_and(|named| Arc::ptr_eq(named, group))
    }

    /// What replies are compared with.
    pub(super) fn matching(&self, matches: &Matches) -> Result<Arc<Match>> {
        let Some(word) = &self.matching else { return Ok(Arc::default()) };
        let name = &word.text[b"match=".len()..];
        matches.find(name).cloned().ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            self.from.error_at(word, format!("match \"{name}\" is not defined"))
        })
    }
}

/// Whether it can be asked for: nothing in it ends the request line.
fn is_path(text: &[u8]) -> bool {
    text.first() == Some(&b'/') && text.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}
