//! Zones that count by key: the common part of `limit_conn_zone` and `limit_req_zone`.
//!
//! The counts are shared by all workers and outlive configurations ([`zones::Zones`]); the
//! variables of the key belong to one configuration. Deliberately absent: what is counted
//! ([`Counted`]).

mod table;

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::{Directive, Error, Load, Result, Template, Word, units};
use metrics::Metric;
use observe::Level;
use zones::{TwoProcesses, ZoneState, Zones};

use crate::Session;
use crate::slabs::{PAGE_BYTES, ShownSlab, SlabUse};
use crate::status::{LimitCounters, LimitCounts, StatusBook};

pub use table::Table;

/// The least size of a zone: eight of nginx's pages.
const SIZE_MIN: u64 = 8 * PAGE_BYTES;

/// A zone of one configuration; `P` is the type of its additional parameters.
pub struct KeyedZone<T, P> {
    pub name: Box<[u8]>,
    /// The additional parameters of its line.
    pub parameters: P,
    /// The counts, which outlive the configuration.
    pub state: Arc<KeyedCounts<T>>,
    key: Template,
    counters: Metric<LimitCounts>,
}

/// The shared content of a zone.
pub struct KeyedCounts<T> {
    /// The key's text in the configuration.
    key: Box<[u8]>,
    counted: Mutex<T>,
}

/// The counts of a zone.
pub trait Counted: Any + Send {
    /// nginx's name for such zones in the message about a changed key.
    const KIND: &'static str;
    /// The directive that declares such zones.
    const DIRECTIVE: &'static str;
    /// Empty counts, in a zone of that many bytes.
    fn new(zone_bytes: u64) -> Self;
    /// The memory that the entries take.
    fn memory(&self) -> SlabUse;
}

impl<T: Counted> ZoneState for KeyedCounts<T> {
    const DIRECTIVES: &'static [&'static str] = &[T::DIRECTIVE];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

/// The zones of one subsystem and type, by name.
struct Declared<T, P>(HashMap<Box<[u8]>, Arc<KeyedZone<T, P>>>);

impl<T, P> Default for Declared<T, P> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Counted, P: 'static> KeyedZone<T, P> {
    /// Reads `NAME KEY zone=NAME:SIZE`. `parameter` reads any other word; it returns false for an
    /// unknown one.
    pub fn declare(
        from: &Directive,
        load: &mut Load<'_>,
        mut parameters: P,
        mut parameter: impl FnMut(&mut P, &Word, &mut Load<'_>) -> Result<bool>,
    ) -> Result<Arc<Self>> {
        let key = Template::compile(from.arg(0), from, load)?;
        let mut zone = None;
        for word in &from.args[1..] {
            match word.text.strip_prefix(b"zone=") {
                Some(text) => zone = Some(name_and_size(text, word, from)?),
                None if parameter(&mut parameters, word, load)? => {}
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
        let open = |old| KeyedCounts::<T>::open(old, name, size, from.arg(0));
        let state = Zones::of(load).open(name, open)?;
        let subsystem = format!("{:?}", load.subsystem);
        let counters =
            Metric::named(&[T::DIRECTIVE.as_bytes(), subsystem.as_bytes(), name].join(&0));
        let book = load.own.of::<StatusBook>();
        book.add_limit(T::DIRECTIVE, name, &counters);
        let counted = state.clone();
        book.add_slab(ShownSlab::new(name, move || counted.lock().memory()));
        let zone = Arc::new(Self { name: name.into(), parameters, state, key, counters });
        load.own.of::<Declared<T, P>>().0.insert(name.into(), zone.clone());
        Ok(zone)
    }

    /// Records that a line uses the zone of a name.
    pub fn mention(name: &[u8], from: &Directive, load: &mut Load<'_>) -> Result<()> {
        Zones::of(load).mention::<KeyedCounts<T>>(name, None, from)
    }

    /// The zone of a name, once all lines have been read.
    pub fn find(name: &[u8], load: &mut Load<'_>) -> Arc<Self> {
        let declared = load.own.of::<Declared<T, P>>();
        declared.0.get(name).cloned().expect("zones that are not declared have been refused")
    }

    /// What its limits have done; `None`: nobody wants to know.
    pub fn counters(&self) -> Option<LimitCounters<'static>> {
        metrics::are_wanted().then(|| self.counters.own())
    }

    /// The session's key, in a scratch vector that the caller gives back. `None` if the key is
    /// empty or too long, so that the session is not counted.
    pub fn key<X: Session>(&self, x: &mut X, length_max: usize) -> Option<Vec<u8>> {
        let mut key = x.scratch();
        self.key.render(x, &mut key);
        if (1..=length_max).contains(&key.len()) {
            return Some(key);
        }
        if let Some(counters) = self.counters() {
            counters.skipped().add(1);
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
    /// A zone of a given size, for tests.
    #[cfg(test)]
    pub(crate) fn of(zone_bytes: u64) -> Arc<Self> {
        Arc::new(Self { key: Box::default(), counted: Mutex::new(T::new(zone_bytes)) })
    }

    /// The counts of the previous configuration's zone; an error if its key differs.
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

    /// Locks the counts; hold the lock only while counting.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        // A panic leaves the counts consistent: they change only after the last step that can fail.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses `NAME:SIZE`.
pub(crate) fn name_and_size<'w>(
    text: &'w [u8],
    word: &Word,
    from: &Directive,
) -> Result<(&'w [u8], u64)> {
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

/// nginx's message for a line without a zone.
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

    /// The level of delays: one level lower.
    pub const fn of_delays(self) -> Level {
        match self {
            Self::Info | Self::Notice => Level::Info,
            Self::Warn => Level::Notice,
            Self::Error => Level::Warn,
        }
    }
}
