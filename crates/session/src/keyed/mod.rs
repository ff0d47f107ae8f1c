//! Zones that count by key: what `limit_conn_zone` and `limit_req_zone` have in common.
//!
//! What is counted is shared by all workers and outlives configurations ([`zones::Zones`]); which
//! variables make the key belongs to one. Deliberately absent: what is counted.

mod table;

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::{Directive, Error, Load, Result, Template, Word, units};
use observe::Level;
use zones::{TwoProcesses, ZoneState, Zones};

use crate::Session;

pub use table::Table;

/// The least size of a zone: eight of nginx's pages.
const SIZE_MIN: u64 = 8 * table::PAGE;

/// A zone of one configuration; `P` is what its line says besides.
pub struct KeyedZone<T, P> {
    /// Its name.
    pub name: Box<[u8]>,
    /// What its line says besides.
    pub parameters: P,
    /// What is counted in it.
    pub state: Arc<KeyedCounts<T>>,
    key: Template,
}

/// What is in a zone.
pub struct KeyedCounts<T> {
    /// The key as it was written.
    key: Box<[u8]>,
    counted: Mutex<T>,
}

/// What is counted in a zone.
pub trait Counted: Any + Send {
    /// How nginx calls the zone where a reload would change its key.
    const KIND: &'static str;
    /// The directive that declares such zones.
    const DIRECTIVE: &'static str;
    /// Nothing counted yet, in a zone of that many bytes.
    fn new(zone_bytes: u64) -> Self;
}

impl<T: Counted> ZoneState for KeyedCounts<T> {
    const DIRECTIVES: &'static [&'static str] = &[T::DIRECTIVE];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

/// The zones of a kind by name, for one subsystem.
struct Declared<T, P>(HashMap<Box<[u8]>, Arc<KeyedZone<T, P>>>);

impl<T, P> Default for Declared<T, P> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Counted, P: 'static> KeyedZone<T, P> {
    /// Reads `NAME KEY zone=NAME:SIZE`. `parameter` takes the other words, or leaves them.
    pub fn declare(
        from: &Directive,
        load: &mut Load<'_>,
        mut parameters: P,
        mut parameter: impl FnMut(&mut P, &Word) -> Result<bool>,
    ) -> Result<()> {
        let key = Template::compile(from.arg(0), from, load)?;
        let mut zone = None;
        for word in &from.args[1..] {
            match word.text.strip_prefix(b"zone=") {
                Some(text) => zone = Some(name_and_size(text, word, from)?),
                None if parameter(&mut parameters, word)? => {}
                None => {
                    return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
                }
            }
        }
        let Some((name, size)) = zone.filter(|(name, _)| !name.is_empty()) else {
            return Err(missing_zone(from));
        };
        Zones::of(load).mention::<KeyedCounts<T>>(name, Some(size), from)?;
        let declared = load.own.of::<Declared<T, P>>();
        if let Some(other) = declared.0.get(name) {
            let shown = String::from_utf8_lossy;
            let (zone, key) = (shown(name), shown(&other.state.key));
            let message = format!("{} \"{zone}\" is already bound to key \"{key}\"", from.name);
            return Err(from.error(message));
        }
        let state =
            Zones::of(load).open(name, |old| KeyedCounts::open(old, name, size, from.arg(0)))?;
        let zone = Self { name: name.into(), parameters, state, key };
        load.own.of::<Declared<T, P>>().0.insert(name.into(), Arc::new(zone));
        Ok(())
    }

    /// Notes that a line uses the zone of that name.
    pub fn mention(name: &[u8], from: &Directive, load: &mut Load<'_>) -> Result<()> {
        Zones::of(load).mention::<KeyedCounts<T>>(name, None, from)
    }

    /// The zone of that name, once all lines have been read.
    pub fn find(name: &[u8], load: &mut Load<'_>) -> Arc<Self> {
        let declared = load.own.of::<Declared<T, P>>();
        declared.0.get(name).cloned().expect("zones that are not declared have been refused")
    }

    /// The session's key, to be given back as scratch. `None`: it has none, or one that is too
    /// long, and is not counted.
    pub fn key<X: Session>(&self, x: &mut X, length_max: usize) -> Option<Vec<u8>> {
        let mut key = x.scratch();
        self.key.render(x, &mut key);
        if (1..=length_max).contains(&key.len()) {
            return Some(key);
        }
        if !key.is_empty() {
            let (name, value) = (observe::Text(&self.state.key), observe::Text(&key));
            let length = format_args!("is more than {length_max} bytes: \"{value}\"");
            x.log(Level::Error, format_args!("the value of the \"{name}\" key {length}"));
        }
        x.give_scratch(key);
        None
    }
}

impl<T: Counted> KeyedCounts<T> {
    /// A zone of that size for a test.
    #[cfg(test)]
    pub(crate) fn of(zone_bytes: u64) -> Arc<Self> {
        Arc::new(Self { key: Box::default(), counted: Mutex::new(T::new(zone_bytes)) })
    }

    /// What a zone of the configuration before has, unless it is counted by another key.
    fn open(old: Option<Arc<Self>>, name: &[u8], size: u64, key: &Word) -> Result<Arc<Self>> {
        let Some(old) = old else {
            let counted = Mutex::new(T::new(size));
            return Ok(Arc::new(Self { key: key.text.clone(), counted }));
        };
        if old.key == key.text {
            return Ok(old);
        }
        let (kind, name) = (T::KIND, String::from_utf8_lossy(name));
        let before = String::from_utf8_lossy(&old.key);
        let previously = format!("while previously it used the \"{before}\" key");
        Err(Error::bare(format!("{kind} \"{name}\" uses the \"{key}\" key {previously}")))
    }

    /// What is counted, for as long as it takes to count.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        // Whoever panicked had it in order: nothing is changed before what can fail.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `NAME:SIZE`
fn name_and_size<'w>(text: &'w [u8], word: &Word, from: &Directive) -> Result<(&'w [u8], u64)> {
    let colon = memchr::memchr(b':', text);
    let said = colon.and_then(|at| Some((&text[..at], units::size(&text[at + 1..])?)));
    match said {
        None => Err(from.error_at(word, format!("invalid zone size \"{word}\""))),
        Some((_, size)) if size < SIZE_MIN => {
            Err(from.error_at(word, format!("zone \"{word}\" is too small")))
        }
        Some(said) => Ok(said),
    }
}

/// nginx's words for a line that names no zone.
pub fn missing_zone(from: &Directive) -> Error {
    from.error(format!("\"{}\" must have \"zone\" parameter", from.name))
}

conf::words! {
    /// The level at which a limit is logged.
    pub enum LogLevel {
        /// `info`
        Info = "info",
        /// `notice`
        Notice = "notice",
        /// `warn`
        Warn = "warn",
        /// `error`
        Error = "error",
    }
}

impl LogLevel {
    /// The level of refusals.
    pub const fn level(self) -> Level {
        match self {
            Self::Info => Level::Info,
            Self::Notice => Level::Notice,
            Self::Warn => Level::Warn,
            Self::Error => Level::Error,
        }
    }

    /// The level of delays: one less grave.
    pub const fn of_delays(self) -> Level {
        match self {
            Self::Info | Self::Notice => Level::Info,
            Self::Warn => Level::Notice,
            Self::Error => Level::Warn,
        }
    }
}
