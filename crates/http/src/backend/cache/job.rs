//! The upkeep of cache directories, in the control thread: each is read at the start, and kept
//! within its limits from then on. Files that were purged are removed here as well. The end of the
//! process leaves an index in each.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::session::ControlJob;
use cache::index_file::IndexOwner;
use cache::purge::PurgeBacklog;
use cache::purge::journal::JournalEnd;
use cache::purge::walk::PurgeWalk;
use cache::upkeep::{CacheUpkeep, Loader, StepBudget};
use net::{Task, clock, offload};
use observe::{Errno, Level};
use zones::Zones;

use super::path::CacheStore;
use crate::site::Site;

/// The pace of the walk through a directory whose index was read: nothing waits for it.
const WALK: StepBudget = StepBudget { files: 1000, threshold_ms: 20, sleep_ms: 100 };

/// Keeps the caches of the newest configuration.
pub(crate) struct CacheKeeper {
    owner: IndexOwner,
    stores: Vec<Arc<CacheStore>>,
    tasks: Vec<Task>,
}

/// How often the rules of purges are looked at, if there are any, and otherwise.
const PURGES_EVERY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// For how long the process before may still purge by requests.
const TWO_PROCESSES_MAX: Duration = Duration::from_secs(30);
/// The rules at which purged files are removed, also without `purger=on`.
const RULES_WALKED: usize = 1 << 16;
/// The least age of such rules otherwise.
const RULE_AGE_S: u64 = 3600;
/// How long a walk is followed by none, as a multiple of its own time.
const REST_AFTER_WALK: u32 = 4;

impl Default for CacheKeeper {
    fn default() -> Self {
        // The number of a process may be reused, so the time is part of the name.
        let name = format!("{} {}", net::process::id(), clock::unix_ms());
        Self { owner: IndexOwner::new(name.into_bytes()), stores: Vec::new(), tasks: Vec::new() }
    }
}

impl ControlJob<Arc<Site>> for CacheKeeper {
    fn adopt(&mut self, _: &Arc<Site>, zones: &Zones) {
        self.tasks.drain(..).for_each(|task| task.stop());
        self.stores = zones.all::<CacheStore>();
        for store in &self.stores {
            read_purges(store);
            self.tasks.push(net::spawn(load(store.clone(), self.owner.clone())));
            self.tasks.push(net::spawn(keep(store.clone())));
            self.tasks.push(net::spawn(keep_purges(store.clone())));
        }
    }

    /// Another process may keep the directories already, and purge.
    fn leave(&mut self) {
        self.tasks.drain(..).for_each(|task| task.stop());
        self.stores.iter().for_each(|store| store.zone.watch_purges(is_purgeable(store)));
    }

    fn finish(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.leave();
        Box::pin(async {
            for store in self.stores.drain(..) {
                let (owner, now_s) = (self.owner.clone(), now_s());
                let path = store.zone.folder().path.clone();
                let ended = offload(move || owner.end(&store.zone, now_s)).await;
                warn_of(&path, "writing", ended.err());
            }
        })
    }
}

/// Logs a failure of the index, without which the next start only takes longer.
fn warn_of(path: &Path, what: &str, error: Option<io::Error>) {
    if let Some(error) = error {
        let (path, errno) = (path.display(), Errno(&error));
        let message = format_args!("{what} the index of cache \"{path}\" failed{errno}");
        observe::log(Level::Warn, message);
    }
}

fn is_purgeable(store: &CacheStore) -> bool {
    store.is_purgeable.load(Ordering::Relaxed)
}

/// Reads the journal of purges, before a worker uses the cache.
fn read_purges(store: &CacheStore) {
    let read = store.zone.read_purges(unix_ns());
    let (path, rest) = (store.zone.journal_path(), "everything stored before is purged");
    let path = path.display();
    match read {
        Ok(JournalEnd::Whole | JournalEnd::Torn) => {}
        Ok(JournalEnd::Damaged) => {
            observe::log(Level::Alert, format_args!("\"{path}\" is damaged: {rest}"));
        }
        Err(error) => {
            let errno = Errno(&error);
            observe::log(Level::Alert, format_args!("open() \"{path}\" failed{errno}: {rest}"));
        }
    }
}

/// Removes purged files, and forgets rules that have no effect any more.
async fn keep_purges(store: Arc<CacheStore>) {
    let begun = Instant::now();
    store.zone.watch_purges(is_purgeable(&store));
    let (mut broadened, mut rest_until) = (0, begun);
    loop {
        let backlog = store.zone.purge_backlog();
        if backlog.broadened > broadened {
            broadened = backlog.broadened;
            let path = store.zone.folder().path.display();
            let what =
                "too many purge rules: older ones were replaced by a purge of everything before";
            observe::log(Level::Alert, format_args!("cache \"{path}\": {what}"));
        }
        if wants_walk(&store, &backlog) && Instant::now() >= rest_until {
            let walk_begun = Instant::now();
            walk(&store).await;
            rest_until = Instant::now() + walk_begun.elapsed() * REST_AFTER_WALK;
        }
        if backlog.rules > 0 {
            forget(&store).await;
        }
        if begun.elapsed() >= TWO_PROCESSES_MAX {
            store.zone.watch_purges(false);
        }
        let [with_rules, without] = PURGES_EVERY;
        net::sleep(if backlog.rules > 0 { with_rules } else { without }).await;
    }
}

fn wants_walk(store: &CacheStore, backlog: &PurgeBacklog) -> bool {
    let age_s = unix_ns().saturating_sub(backlog.oldest_ns) / 1_000_000_000;
    let is_old = age_s >= store.limits.inactive_s.max(RULE_AGE_S);
    backlog.oldest_ns > 0 && (store.purger || is_old || backlog.rules >= RULES_WALKED)
}

/// Walks through the directory once.
async fn walk(store: &Arc<CacheStore>) {
    let mut walk = PurgeWalk::begin(&store.zone);
    loop {
        let store_of_step = store.clone();
        let (walked, is_done) = offload(move || {
            let CacheStore { zone, purge, tags, .. } = &*store_of_step;
            let is_done = walk.step(zone, purge, &|head| tags.values_in(head), stopwatch());
            (walk, is_done)
        })
        .await;
        walk = walked;
        if is_done {
            return;
        }
        net::sleep(Duration::from_millis(store.purge.sleep_ms)).await;
    }
}

async fn forget(store: &Arc<CacheStore>) {
    let store = store.clone();
    let forgotten = offload(move || {
        let path = store.zone.journal_path();
        store.zone.forget_purges(unix_ns()).map_err(|error| (path, error))
    })
    .await;
    if let Err((path, error)) = forgotten {
        let (path, errno) = (path.display(), Errno(&error));
        observe::log(Level::Alert, format_args!("\"{path}\" cannot be written{errno}"));
    }
}

/// Nanoseconds since 1970. Purges must be in order with the times of files, which are not as coarse
/// as the worker's clock.
pub(super) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

async fn keep(store: Arc<CacheStore>) {
    let mut upkeep = CacheUpkeep::default();
    loop {
        let (store, now_s) = (store.clone(), now_s());
        let (kept, delay_ms) = offload(move || {
            let CacheStore { zone, limits, upkeep: budget, .. } = &*store;
            let free = || net::file::free_bytes(&zone.folder().path).ok();
            let delay_ms = upkeep.step(zone, limits, budget, now_s, stopwatch(), free);
            (upkeep, delay_ms)
        })
        .await;
        upkeep = kept;
        net::sleep(Duration::from_millis(delay_ms)).await;
    }
}

/// Reads the directory, unless that was done for an earlier configuration.
async fn load(store: Arc<CacheStore>, owner: IndexOwner) {
    if !store.zone.is_cold() {
        return;
    }
    let (begun, now_s) = (store.clone(), now_s());
    let begun = offload(move || owner.begin(&begun.zone, now_s)).await;
    let has_index = matches!(begun, Ok(true));
    warn_of(&store.zone.folder().path, "reading", begun.err());
    let budget = if has_index { WALK } else { store.loader };
    let (mut loader, mut is_done) = (Loader::default(), false);
    while !is_done {
        let (store, now_s) = (store.clone(), self::now_s());
        (loader, is_done) = offload(move || {
            let is_done = loader.step(&store.zone, &budget, now_s, stopwatch());
            (loader, is_done)
        })
        .await;
        if !is_done {
            net::sleep(Duration::from_millis(budget.sleep_ms)).await;
        }
    }
}

fn now_s() -> i64 {
    (clock::unix_ms() / 1000) as i64
}

/// Milliseconds from now on.
fn stopwatch() -> impl Fn() -> u64 {
    let begun = Instant::now();
    move || begun.elapsed().as_millis() as u64
}
