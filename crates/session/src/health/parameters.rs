//! The parameters of `health_check` that `http` and `stream` have in common.

use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Word, units};
use upstream::health::{Begin, CheckTerms};
use upstream::{Group, Groups};

/// The parameters of a `health_check` line that all protocols have.
#[derive(Clone)]
pub struct CheckParameters {
    /// When servers are checked, and how many results make a change.
    pub terms: CheckTerms,
    /// The port to connect to; `None`: the server's own.
    pub port: Option<u16>,
    /// `match=NAME`
    matching: Option<Word>,
    from: Directive,
}

impl CheckParameters {
    /// The defaults, for this line.
    pub fn new(from: &Directive) -> Self {
        let terms = CheckTerms {
            interval_ms: 5000,
            jitter_ms: 0,
            fails: 1,
            passes: 1,
            begin: Begin::Healthy,
        };
        Self { terms, port: None, matching: None, from: from.clone() }
    }

    /// Takes a parameter. One that is not in common is invalid here.
    pub fn set(&mut self, word: &Word) -> Result<()> {
        let invalid = || self.invalid(word);
        let (name, value) = split(word);
        let time = || units::milliseconds(value).ok_or_else(invalid);
        let count = || {
            let number = units::number(value).filter(|number| *number > 0);
            number.and_then(|number| u32::try_from(number).ok()).ok_or_else(invalid)
        };
        match name {
            b"interval=" => {
                let interval_ms = Some(time()?).filter(|ms| *ms > 0);
                self.terms.interval_ms = interval_ms.ok_or_else(invalid)?;
            }
            b"jitter=" => self.terms.jitter_ms = time()?,
            b"fails=" => self.terms.fails = count()?,
            b"passes=" => self.terms.passes = count()?,
            b"port=" => self.port = Some(u16::try_from(count()?).map_err(|_| invalid())?),
            b"match=" if !value.is_empty() => self.matching = Some(word.clone()),
            b"mandatory" => self.terms.begin = Begin::Checking { persistent: false },
            b"persistent" => match self.terms.begin {
                Begin::Checking { .. } => {
                    self.terms.begin = Begin::Checking { persistent: true };
                }
                _ => {
                    let message = "\"persistent\" requires \"mandatory\"";
                    return Err(self.from.error_at(word, message));
                }
            },
            _ => return Err(invalid()),
        }
        Ok(())
    }

    /// The error for an unknown parameter or a bad value.
    pub fn invalid(&self, word: &Word) -> Error {
        self.from.error_at(word, format!("invalid parameter \"{word}\""))
    }

    /// Whether the line names a `match` block.
    pub fn has_matching(&self) -> bool {
        self.matching.is_some()
    }

    /// An error about the directive.
    pub fn refuse(&self, reason: &str) -> Error {
        self.from.refuse(reason)
    }

    /// The `match` block that the line names, which `find` looks up; `None` if it names none.
    pub fn matching<M>(&self, find: impl FnOnce(&[u8]) -> Option<M>) -> Result<Option<M>> {
        let Some(word) = &self.matching else { return Ok(None) };
        let name = split(word).1;
        let found = find(name).ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            self.from.error_at(word, format!("match \"{name}\" is not defined"))
        });
        found.map(Some)
    }
}

/// Whether a group is one that an `upstream` block defines.
pub fn is_named(group: &Arc<Group>, load: &mut Load<'_>) -> bool {
    let named = load.own.of::<Groups>().find(group.name());
    named.is_some_and(|named| Arc::ptr_eq(named, group))
}

/// `NAME=` and its value.
fn split(word: &Word) -> (&[u8], &[u8]) {
    match word.text.iter().position(|&byte| byte == b'=') {
        Some(at) => word.text.split_at(at + 1),
        None => (&word.text, b""),
    }
}
