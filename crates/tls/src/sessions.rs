//! How sessions are resumed: where they are kept, and what their tickets are encrypted with.

use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value, Word, units};
use net::tls::{TicketKey, TlsSessionCache};
use zones::{TwoProcesses, ZoneState, Zones};

/// Sessions in a `builtin` cache of no other size, as in nginx.
const BUILTIN_SESSIONS: u64 = 20_480;
/// Bytes that a session takes in a `builtin` cache, about.
const SESSION_BYTES: u64 = 1024;
/// Bytes of the cache of servers that take early data and have no other.
const EARLY_DATA_CACHE_BYTES: u64 = 4 << 20;
/// The smallest `shared` cache, as in nginx: eight pages.
const SHARED_MIN: u64 = 8 * 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCache {
    kept: KeptSessions,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum KeptSessions {
    None,
    Builtin { sessions: u64, line: Box<[u8]> },
    Shared { name: Box<[u8]>, size: u64 },
}

impl Value for SessionCache {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut kept = KeptSessions::None;
        for word in &from.args {
            match &*word.text {
                b"off" | b"none" => kept = KeptSessions::None,
                _ => {
                    let said = one(word, from, load)?;
                    if !matches!(kept, KeptSessions::Shared { .. }) {
                        kept = said;
                    }
                }
            }
        }
        Ok(Self { kept })
    }
}

fn one(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<KeptSessions> {
    let invalid = || from.error_at(word, format!("invalid session cache \"{word}\""));
    let mut parts = word.text.split(|byte| *byte == b':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(b"builtin"), sessions, None, None) => {
            let sessions = sessions.map(|text| units::number(text).ok_or_else(invalid));
            let sessions = sessions.transpose()?.unwrap_or(BUILTIN_SESSIONS);
            let line = format!("builtin at {}", load.sources.place(from.end)).into_bytes().into();
            Ok(KeptSessions::Builtin { sessions, line })
        }
        (Some(b"shared"), Some(name), Some(size), None) if !name.is_empty() => {
            let size = units::size(size).ok_or_else(invalid)?;
            if size < SHARED_MIN {
                let message = format!("session cache \"{word}\" is too small");
                return Err(from.error_at(word, message));
            }
            Zones::of(load).mention::<SessionZone>(name, Some(size), from)?;
            Ok(KeptSessions::Shared { name: name.into(), size })
        }
        (Some(b"shared"), Some(_), None, None) => {
            Err(invalid().help(format!("a size is missing: {word}:10m")))
        }
        _ => Err(invalid()),
    }
}

/// A cache as a zone has it.
struct SessionZone(Arc<TlsSessionCache>);

impl ZoneState for SessionZone {
    const DIRECTIVES: &'static [&'static str] = &["ssl_session_cache", "ssl_early_data"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl SessionZone {
    fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self(Arc::new(TlsSessionCache::new(bytes as usize))))
    }
}

impl SessionCache {
    /// The cache, which the configuration before may have had.
    pub(super) fn open(&self, load: &mut Load<'_>) -> Result<Option<Arc<TlsSessionCache>>> {
        let zones = Zones::of(load);
        let zone = match &self.kept {
            KeptSessions::None => return Ok(None),
            KeptSessions::Builtin { sessions, line } => {
                let bytes = sessions.saturating_mul(SESSION_BYTES);
                zones.keep(line, |before| before.unwrap_or_else(|| SessionZone::new(bytes)))
            }
            KeptSessions::Shared { name, size } => {
                zones.open(name, |before| Ok(before.unwrap_or_else(|| SessionZone::new(*size))))?
            }
        };
        Ok(Some(zone.0.clone()))
    }
}

/// Sessions of servers that take early data and have no cache of their own.
pub(super) fn early_data_cache(load: &mut Load<'_>) -> Arc<TlsSessionCache> {
    let new = || SessionZone::new(EARLY_DATA_CACHE_BYTES);
    Zones::of(load).keep(b"early data", |before| before.unwrap_or_else(new)).0.clone()
}

/// `ssl_session_ticket_key`; `None`: its file is not on the machine where the configuration is
/// checked.
#[derive(Clone)]
pub struct TicketKeyFile(pub(super) Option<TicketKey>);

impl Value for TicketKeyFile {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let path = load.conf_path(&word.text);
        let path = path.as_os_str().as_bytes();
        let text = load.files.read(path);
        let text = text.map_err(|error| from.error_at(word, error.describe(path)));
        let Some(text) = load.of_this_machine(text)? else { return Ok(Self(None)) };
        TicketKey::read(&text).map(|key| Self(Some(key))).ok_or_else(|| {
            let name = String::from_utf8_lossy(path);
            from.error_at(word, format!("\"{name}\" must be 48 or 80 bytes"))
        })
    }
}
