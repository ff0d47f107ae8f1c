//! `*_cache_path`: the directories of caches, with their zones and limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::session::status::{CacheCounts, CacheLevels, ShownCache, StatusBook};
use cache::upkeep::{CacheLimits, StepBudget};
use cache::{CacheFolder, CacheZone, DirectoryLevels};
use conf::{Directive, Error, Load, Result, Word, units};
use metrics::Metric;
use zones::{TwoProcesses, ZoneState, Zones};

use super::tags::TagFields;
use crate::files::{TempFolder, TempPaths};

/// The smallest zone: two pages.
const SIZE_MIN: u64 = 2 * 4096;
/// The default of `inactive`.
const INACTIVE_S: u64 = 600;
/// The default of `max_variants`.
const VARIANTS_MAX: u64 = 1000;
/// The default of `manager_...`.
const UPKEEP: StepBudget = StepBudget { files: 100, threshold_ms: 200, sleep_ms: 50 };
/// The default of `loader_...`: with nginx's, a million files would take eight minutes.
const LOADER: StepBudget = StepBudget { files: 10_000, threshold_ms: 50, sleep_ms: 10 };
/// The default of `purger_...`: with nginx's, a million files would take an hour and a half.
const PURGER: StepBudget = StepBudget { files: 1000, threshold_ms: 50, sleep_ms: 50 };

/// A cache of a configuration. Its index outlives the configuration.
pub(crate) struct CacheStore {
    pub(super) zone: Arc<CacheZone>,
    /// Whether temporary files are where the family has them, not beside the cached ones.
    pub(super) use_temp_path: bool,
    /// The most variants of a key.
    pub(super) variants_max: usize,
    /// The largest body that is stored.
    pub(super) body_max: u64,
    pub(crate) limits: CacheLimits,
    pub(crate) loader: StepBudget,
    pub(crate) upkeep: StepBudget,
    /// What it has done.
    pub(super) counts: Metric<CacheCounts>,
    /// Whether purged files are removed at once.
    pub(super) purger: bool,
    pub(super) purge: StepBudget,
    pub(super) tags: TagFields,
    /// Whether requests can purge: other processes learn of such purges only from the journal.
    pub(super) is_purgeable: AtomicBool,
}

impl ZoneState for CacheStore {
    const DIRECTIVES: &'static [&'static str] =
        &["proxy_cache_path", "fastcgi_cache_path", "uwsgi_cache_path", "scgi_cache_path"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Reread;
}

/// The caches that a configuration has declared, by name.
#[derive(Default)]
pub(super) struct DeclaredCaches(pub(super) HashMap<Box<[u8]>, Arc<CacheStore>>);

/// A line, as far as it was read.
struct CacheLine<'w> {
    folder: CacheFolder,
    zone: Option<(&'w [u8], u64)>,
    use_temp_path: bool,
    variants_max: u64,
    /// `None`: that of all.
    body_max: Option<u64>,
    limits: CacheLimits,
    loader: StepBudget,
    upkeep: StepBudget,
    purger: bool,
    purge: StepBudget,
    tags: TagFields,
}

pub(super) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = &from.arg(0).text;
    let path = load.path(name.strip_suffix(b"/").unwrap_or(name));
    let mut line = CacheLine {
        folder: CacheFolder { path: path.into(), levels: DirectoryLevels::default() },
        zone: None,
        use_temp_path: true,
        variants_max: VARIANTS_MAX,
        body_max: None,
        limits: CacheLimits { inactive_s: INACTIVE_S, size_max: u64::MAX, free_min: 0 },
        loader: LOADER,
        upkeep: UPKEEP,
        purger: false,
        purge: PURGER,
        tags: TagFields::default(),
    };
    for word in &from.args[1..] {
        line.add(word, from)?;
    }
    let Some((name, size)) = line.zone.filter(|(name, _)| !name.is_empty()) else {
        return Err(from.error(format!("\"{}\" must have \"keys_zone\" parameter", from.name)));
    };
    if load.own.of::<DeclaredCaches>().0.contains_key(name) {
        let name = String::from_utf8_lossy(name);
        return Err(from.error(format!("duplicate zone \"{name}\"")));
    }
    let store = line.open(name, size, from, load)?;
    let (levels, metric) = (store.clone(), store.counts.clone());
    let levels = Arc::new(move || levels.levels());
    load.own.of::<StatusBook>().add_cache(ShownCache { name: name.into(), metric, levels });
    load.own.of::<DeclaredCaches>().0.insert(name.into(), store);
    Ok(())
}

impl CacheStore {
    fn levels(&self) -> CacheLevels {
        let limit = self.limits.size_max;
        CacheLevels {
            size: self.zone.bytes(),
            size_max: (limit != u64::MAX).then_some(limit),
            entries: self.zone.entries() as u64,
            entries_max: self.zone.entries_max() as u64,
            purge_rules: self.zone.purge_rules() as u64,
            is_cold: self.zone.is_cold(),
        }
    }
}

impl<'w> CacheLine<'w> {
    fn add(&mut self, word: &'w Word, from: &Directive) -> Result<()> {
        let text = &*word.text;
        let equals = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
        let (name, value) = text.split_at(equals);
        let value = value.get(1..).unwrap_or_default();
        let shown = String::from_utf8_lossy(name);
        let invalid = || from.error_at(word, format!("invalid {shown} value \"{word}\""));
        let number = |of: fn(&[u8]) -> Option<u64>| of(value).ok_or_else(invalid);
        match name {
            b"levels" => {
                let levels = DirectoryLevels::parse(value);
                let invalid = || from.error_at(word, format!("invalid \"levels\" \"{word}\""));
                self.folder.levels = levels.ok_or_else(invalid)?;
            }
            b"use_temp_path" => self.use_temp_path = switch(value, "use_temp_path", word, from)?,
            b"keys_zone" => self.zone = Some(keys_zone(value, word, from)?),
            b"inactive" => self.limits.inactive_s = number(units::seconds)?,
            b"max_size" => self.limits.size_max = number(units::offset)?,
            b"max_object_size" => self.body_max = Some(number(units::offset)?),
            b"max_variants" => {
                let positive = |text: &[u8]| units::number(text).filter(|number| *number > 0);
                self.variants_max = number(positive)?;
            }
            b"min_free" => self.limits.free_min = number(units::offset)?,
            b"loader_files" => self.loader.files = number(units::number)?,
            b"loader_sleep" => self.loader.sleep_ms = number(units::milliseconds)?,
            b"loader_threshold" => self.loader.threshold_ms = number(units::milliseconds)?,
            b"manager_files" => self.upkeep.files = number(units::number)?,
            b"manager_sleep" => self.upkeep.sleep_ms = number(units::milliseconds)?,
            b"manager_threshold" => self.upkeep.threshold_ms = number(units::milliseconds)?,
            b"purger" => self.purger = switch(value, "purger", word, from)?,
            b"purger_files" => self.purge.files = number(units::number)?,
            b"purger_sleep" => self.purge.sleep_ms = number(units::milliseconds)?,
            b"purger_threshold" => self.purge.threshold_ms = number(units::milliseconds)?,
            b"tags" => self.tags = TagFields::parse(value, word, from)?,
            _ => return Err(from.error_at(word, format!("invalid parameter \"{word}\""))),
        }
        Ok(())
    }

    /// The cache, with the index that the previous configuration has of the same directory.
    fn open(
        self,
        name: &[u8],
        size: u64,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<Arc<CacheStore>> {
        let variants_max = usize::try_from(self.variants_max).unwrap_or(usize::MAX);
        let body_max = self.body_max.unwrap_or(u64::MAX).min(self.limits.size_max);
        let Self { folder, use_temp_path, limits, loader, upkeep, purger, purge, tags, .. } = self;
        let folders = load.registry.of::<TempPaths>();
        if !folders.0.iter().any(|known| *known.path == *folder.path) {
            let path = folder.path.to_path_buf();
            folders.0.push(TempFolder { path, named: Some(from.words()) });
        }
        Zones::of(load).mention::<CacheStore>(name, Some(size), from)?;
        Zones::of(load).open(name, |old: Option<Arc<CacheStore>>| {
            let zone = match old.map(|old| old.zone.clone()) {
                None => Arc::new(CacheZone::new(folder, size)),
                Some(zone) if *zone.folder() == folder => zone,
                Some(zone) => return Err(changed(name, &folder, zone.folder())),
            };
            let counts = Metric::named(name);
            let is_purgeable = AtomicBool::new(false);
            Ok(Arc::new(CacheStore {
                zone,
                use_temp_path,
                variants_max,
                body_max,
                limits,
                loader,
                upkeep,
                counts,
                purger,
                purge,
                tags,
                is_purgeable,
            }))
        })
    }
}

fn switch(value: &[u8], name: &str, word: &Word, from: &Directive) -> Result<bool> {
    let must = "it must be \"on\" or \"off\"";
    match value {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(from.error_at(word, format!("invalid {name} value \"{word}\", {must}"))),
    }
}

/// `NAME:SIZE`
fn keys_zone<'w>(value: &'w [u8], word: &Word, from: &Directive) -> Result<(&'w [u8], u64)> {
    let invalid = || from.error_at(word, format!("invalid keys zone size \"{word}\""));
    let colon = value.iter().position(|byte| *byte == b':').ok_or_else(invalid)?;
    let size = units::size(&value[colon + 1..]).ok_or_else(invalid)?;
    match size < SIZE_MIN {
        true => Err(from.error_at(word, format!("keys zone \"{word}\" is too small"))),
        false => Ok((&value[..colon], size)),
    }
}

/// nginx's message for a zone that a reload gives another directory.
fn changed(name: &[u8], now: &CacheFolder, before: &CacheFolder) -> Error {
    let name = String::from_utf8_lossy(name);
    Error::bare(match now.path == before.path {
        true => format!("cache \"{name}\" had previously different levels"),
        false => {
            let (now, before) = (now.path.display(), before.path.display());
            format!(
                "cache \"{name}\" uses the \"{now}\" cache path while previously it used the \
                 \"{before}\" cache path"
            )
        }
    })
}
