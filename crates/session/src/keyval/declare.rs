//! The directives `keyval_zone` and `keyval`.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use conf::lacking::{Class, LinePart};
use conf::{Directive, Load, Result, Template, Word, units};
use zones::Zones;

use super::journal::{StateMark, journal_path, read_journal};
use super::key::KeyvalType;
use super::readers::KeyvalReaders;
use super::state::{KeyvalNow, KeyvalStateError, read_state};
use super::sync::SyncedTable;
use super::table::KeyvalTable;
use super::zone::KeyvalZone;
use crate::keyed::{missing_zone, name_and_size};
use crate::status::StatusBook;
use crate::store::{StoreAddress, StoreBook};
use crate::variables::{self, Variable};
use crate::worker_slots::WorkerSlotKinds;
use crate::{Session, WorkerGeneration};

/// The zones that a subsystem's lines name.
#[derive(Default)]
struct KeyvalPlaces(HashMap<Box<[u8]>, Arc<KeyvalPlace>>);

/// A zone that lines name, perhaps before the line that declares it.
struct KeyvalPlace {
    /// The zone's number among those of the subsystem.
    number: usize,
    zone: OnceLock<Arc<KeyvalZone>>,
}

/// The line of a zone.
struct ZoneLine<'d> {
    name: &'d [u8],
    bytes: u64,
    kind: KeyvalType,
    timeout_ms: Option<u64>,
    state: Option<(PathBuf, &'d Word)>,
    /// The address of the store, as it is written and as it was read.
    sync: Option<(&'d [u8], StoreAddress)>,
}

/// Reads `keyval KEY $VARIABLE zone=NAME` and defines the variable.
pub fn declare<X: Session>(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let key = Template::compile(from.arg(0), from, load)?;
    let name = variables::claim::<X>(from.arg(1), from, load)?;
    let word = from.arg(2);
    let zone = match word.text.strip_prefix(b"zone=") {
        Some(zone) if !zone.is_empty() => zone,
        _ => return Err(from.error_at(word, format!("invalid parameter \"{word}\""))),
    };
    Zones::of(load).mention::<KeyvalZone>(zone, None, from)?;
    let place = KeyvalPlaces::place(zone, load);
    let slots: &mut WorkerSlotKinds<WorkerGeneration<X::Configuration>> = load.own.of();
    slots.declare::<KeyvalReaders>();
    let get = move |x: &mut X, out: &mut Vec<u8>| {
        let start = out.len();
        key.render(x, out);
        let found = place.append(x, start, out);
        if !found {
            out.truncate(start);
        }
        found
    };
    variables::define(name, Variable::cached(get), load);
    Ok(())
}

/// Reads `keyval_zone zone=NAME:SIZE [state=FILE] [sync=STORE] [timeout=TIME] [type=TYPE]`.
pub fn declare_zone(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let line = ZoneLine::read(from, load)?;
    Zones::of(load).mention::<KeyvalZone>(line.name, Some(line.bytes), from)?;
    let place = KeyvalPlaces::place(line.name, load);
    if place.zone.get().is_some() {
        let shown = String::from_utf8_lossy(line.name);
        return Err(from.error(format!("keyval zone \"{shown}\" is declared twice")));
    }
    let table = line.kept_table(from, load)?;
    let subsystem = load.subsystem;
    let zone = Zones::of(load).open::<KeyvalZone>(line.name, |old| {
        let state = line.state.as_ref().map(|(path, _)| Arc::from(path.as_path()));
        let mut zone = match &old {
            Some(old) if old.kind != line.kind => return Err(line.changed_type(old, from)),
            Some(old) => old.renewed(),
            None => KeyvalZone::new(subsystem, line.name, table),
        };
        if let Some((address, _)) = &line.sync {
            zone.share(address, old.as_deref());
        }
        zone.has_new_file = old.is_some_and(|old| old.state != state);
        zone.timeout_ms = line.timeout_ms;
        zone.state = state;
        Ok(Arc::new(zone))
    })?;
    load.own.of::<StatusBook>().add_keyval(&zone);
    if let (Some((_, store)), Some(sync)) = (&line.sync, &zone.sync) {
        StoreBook::join(store, Arc::new(SyncedTable::new(&zone, &sync.replica, store)), load);
    }
    // It was found unset above.
    let _ = place.zone.set(zone);
    Ok(())
}

impl KeyvalPlaces {
    fn place(zone: &[u8], load: &mut Load<'_>) -> Arc<KeyvalPlace> {
        let places = &mut load.own.of::<Self>().0;
        let number = places.len();
        let new = || Arc::new(KeyvalPlace { number, zone: OnceLock::new() });
        places.entry(zone.into()).or_insert_with(new).clone()
    }
}

impl KeyvalPlace {
    /// Puts the value of the text after `start` into its place; false if nothing matches it.
    fn append<X: Session>(&self, x: &X, start: usize, out: &mut Vec<u8>) -> bool {
        let Some(zone) = self.zone.get() else { return false };
        let readers: &KeyvalReaders = x.generation().worker.of();
        readers.read(self.number, zone, |table| {
            let Some(entry) = table.find(&out[start..], net::clock::monotonic_ms()) else {
                return false;
            };
            out.truncate(start);
            out.extend_from_slice(&entry.value);
            true
        })
    }
}

impl<'d> ZoneLine<'d> {
    fn read(from: &'d Directive, load: &mut Load<'_>) -> Result<Self> {
        let (mut zone, mut kind, mut timeout_ms) = (None, None, None);
        let (mut state, mut sync) = (None, None);
        for word in &from.args {
            let invalid = |what: &str| from.error_at(word, format!("invalid {what} \"{word}\""));
            let text = &word.text;
            if let Some(text) = text.strip_prefix(b"zone=") {
                zone = Some(name_and_size(text, word, from)?);
            } else if let Some(text) = text.strip_prefix(b"type=") {
                kind = Some(KeyvalType::of(text).ok_or_else(|| invalid("parameter"))?);
            } else if let Some(text) = text.strip_prefix(b"timeout=") {
                let time_ms = units::milliseconds(text).filter(|time_ms| *time_ms > 0);
                timeout_ms = Some(time_ms.ok_or_else(|| invalid("timeout"))?);
            } else if let Some(text) = text.strip_prefix(b"state=").filter(|t| !t.is_empty()) {
                state = Some((load.path(text), word));
            } else if let Some(text) = text.strip_prefix(b"sync=") {
                sync = Some((text, StoreAddress::read(text, word, from, load)?));
            } else if **text == *b"sync" {
                without_sync(word, from, load)?;
            } else {
                return Err(invalid("parameter"));
            }
        }
        let Some((name, bytes)) = zone.filter(|(name, _)| !name.is_empty()) else {
            return Err(missing_zone(from));
        };
        let kind = kind.unwrap_or(KeyvalType::String);
        Ok(Self { name, bytes, kind, timeout_ms, state, sync })
    }

    /// The table of a new zone: the content of the state file, if there is one. It is read even if
    /// the zone is not new, so that a broken file is found before it is needed.
    fn kept_table(&self, from: &Directive, load: &mut Load<'_>) -> Result<KeyvalTable> {
        let mut table = KeyvalTable::new(self.kind, self.bytes);
        let Some((path, word)) = &self.state else { return Ok(table) };
        let Some(text) = read_kept(path, word, from, load)? else { return Ok(table) };
        let invalid = |path: &Path, error: KeyvalStateError| {
            let place = format!("{}:{}", path.display(), error.line);
            from.error_at(word, format!("{} in {place}", error.message))
        };
        read_state(&text, &mut table, KeyvalNow::read()).map_err(|error| invalid(path, error))?;
        let journal = journal_path(path);
        if let Some(changes) = read_kept(&journal, word, from, load)? {
            let of = StateMark::of(&text);
            let is_own = read_journal(&changes, of, &mut table, KeyvalNow::read());
            if !is_own.map_err(|error| invalid(&journal, error))? {
                let (journal, path) = (journal.display(), path.display());
                let why = format!("{journal} is not used: it belongs to another {path}");
                load.warn(from.error_at(word, why));
            }
        }
        Ok(table)
    }

    fn changed_type(&self, old: &KeyvalZone, from: &Directive) -> conf::Error {
        let name = String::from_utf8_lossy(self.name);
        let (now, before) = (self.kind.name(), old.kind.name());
        let message = format!("keyval zone \"{name}\" has type \"{now}\" while previously it had");
        from.error(format!("{message} \"{before}\""))
            .help("give the zone another name; its keys are of the other type")
    }
}

/// The text of a file that may not exist.
fn read_kept(
    path: &Path,
    word: &Word,
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<Option<Arc<[u8]>>> {
    let path = path.as_os_str().as_bytes();
    match load.files.read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => {
            let error = from.error_at(word, error.describe(path));
            load.of_this_machine::<()>(Err(error))?;
            Ok(None)
        }
    }
}

fn without_sync(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let missing = "parameter \"sync\" without the address of a store is not supported";
    let part = LinePart {
        what: "keyval_zone ... sync".into(),
        module: "NGINX Plus",
        class: Class::Behavior,
    };
    let error = from.error_at(word, missing);
    load.without_part(from, part, error.help("give an address: sync=valkey://HOST:PORT"))
}
