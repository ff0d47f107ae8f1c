//! Severity of messages, and the levels that a log accepts.

use conf::{Directive, Error as ConfError, Result, Word};

/// nginx's levels. Each part of the program has a debug level of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Emerg,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    DebugCore,
    DebugAlloc,
    DebugMutex,
    DebugEvent,
    DebugHttp,
    DebugMail,
    DebugStream,
}

use Level::*;

const PLAIN: [Level; 7] = [Emerg, Alert, Crit, Error, Warn, Notice, Info];
const DEBUG: [Level; 7] =
    [DebugCore, DebugAlloc, DebugMutex, DebugEvent, DebugHttp, DebugMail, DebugStream];

impl Level {
    /// The name in brackets: `error`; `debug` for all debug levels.
    pub const fn name(self) -> &'static str {
        match self {
            Emerg => "emerg",
            Alert => "alert",
            Crit => "crit",
            Error => "error",
            Warn => "warn",
            Notice => "notice",
            Info => "info",
            _ => "debug",
        }
    }

    pub const fn is_debug(self) -> bool {
        self as u8 > Info as u8
    }

    /// syslog's severity, 0 to 7 (RFC 3164, section 4.1.1).
    pub const fn severity(self) -> u8 {
        if self.is_debug() { 7 } else { self as u8 }
    }

    const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// The word of `error_log` for the level, such as `debug_http`.
    const fn part(self) -> &'static str {
        match self {
            DebugCore => "debug_core",
            DebugAlloc => "debug_alloc",
            DebugMutex => "debug_mutex",
            DebugEvent => "debug_event",
            DebugHttp => "debug_http",
            DebugMail => "debug_mail",
            DebugStream => "debug_stream",
            other => other.name(),
        }
    }
}

/// A set of levels: those that a log accepts. Checking a message is one bit test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSet(u16);

impl LevelSet {
    pub const NONE: Self = Self(0);
    /// All levels, including debug messages.
    pub const ALL: Self = Self(u16::MAX);

    /// This level and the more severe ones; `DebugX` adds that part's debug messages to all others.
    pub const fn down_to(level: Level) -> Self {
        match level.is_debug() {
            true => Self(level.bit() | ((Info.bit() << 1) - 1)),
            false => Self((level.bit() << 1) - 1),
        }
    }

    /// Whether the set has the level.
    pub const fn has(self, level: Level) -> bool {
        self.0 & level.bit() != 0
    }

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Parses the levels of an `error_log`; without any, the level is `error`.
    pub(crate) fn parse(words: &[Word], from: &Directive) -> Result<Self> {
        let (mut plain, mut parts) = (false, Self::NONE);
        let mut levels = Self::NONE;
        for word in words {
            let named = |level: &&Level| level.part().as_bytes() == &*word.text;
            if let Some(level) = PLAIN.iter().find(named) {
                levels = Self::down_to(*level);
            } else if &*word.text == b"debug" {
                levels = Self::ALL;
            } else if let Some(part) = DEBUG.iter().find(named).filter(|_| !plain) {
                parts = parts.or(Self::down_to(*part));
                continue;
            } else {
                return Err(invalid(word, from));
            }
            if plain || parts != Self::NONE {
                return Err(from.error_at(word, format!("duplicate log level \"{word}\"")));
            }
            plain = true;
        }
        match levels.or(parts) {
            Self::NONE => Ok(Self::down_to(Error)),
            said => Ok(said),
        }
    }
}

fn invalid(word: &Word, from: &Directive) -> ConfError {
    let error = from.error_at(word, format!("invalid log level \"{word}\""));
    match &*word.text {
        b"json" | b"format=json" => error.help("For lines in JSON, \"json\" is the last word."),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_includes_the_more_severe_ones() {
        let warn = LevelSet::down_to(Warn);
        assert!(warn.has(Emerg) && warn.has(Warn) && !warn.has(Notice) && !warn.has(DebugHttp));
        let http = LevelSet::down_to(DebugHttp);
        assert!(http.has(Info) && http.has(DebugHttp) && !http.has(DebugEvent));
    }
}
