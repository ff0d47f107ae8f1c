//! The upkeep of cache directories, in the control thread: each is read at the start, and kept
//! within its limits from then on. The end of the process leaves an index in each.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::session::ControlJob;
use cache::index_file::IndexOwner;
use cache::upkeep::{CacheUpkeep, Loader, StepBudget};
use net::{Task, clock, offload};
use observe::{Errno, Level};
use zones::Zones;

use super::path::CacheStore;
use crate::site::Site;

/// The walk through a directory whose index was read: it hurries nobody.
const WALK: StepBudget = StepBudget { files: 1000, threshold_ms: 20, sleep_ms: 100 };

/// Keeps the caches of the newest configuration.
pub(crate) struct CacheKeeper {
    owner: IndexOwner,
    stores: Vec<Arc<CacheStore>>,
    tasks: Vec<Task>,
}

impl Default for CacheKeeper {
    fn default() -> Self {
        // Numbers of processes are given again.
        let name = format!("{} {}", net::process::id(), clock::unix_ms());
        Self { owner: IndexOwner::new(name.into_bytes()), stores: Vec::new(), tasks: Vec::new() }
    }
}

impl ControlJob<Arc<Site>> for CacheKeeper {
    fn adopt(&mut self, _: &Arc<Site>, zones: &Zones) {
        self.leave();
        self.stores = zones.all::<CacheStore>();
        let tasks = |store: &Arc<CacheStore>| {
            let loads = net::spawn(load(store.clone(), self.owner.clone()));
            [loads, net::spawn(keep(store.clone()))]
        };
        self.tasks = self.stores.iter().flat_map(tasks).collect();
    }

    /// Another process may keep the directories already.
    fn leave(&mut self) {
        self.tasks.drain(..).for_each(|task| task.stop());
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

/// Nothing is lost without an index but time.
fn warn_of(path: &Path, what: &str, error: Option<io::Error>) {
    if let Some(error) = error {
        let (path, errno) = (path.display(), Errno(&error));
        let message = format_args!("{what} the index of cache \"{path}\" failed{errno}");
        observe::log(Level::Warn, message);
    }
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
