//! The upkeep of cache directories, in the control thread: each is read at the start, and kept
//! within its limits from then on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::session::ControlJob;
use cache::upkeep::{CacheUpkeep, Loader};
use net::{Task, clock, offload};
use zones::Zones;

use super::path::CacheStore;
use crate::site::Site;

/// Keeps the caches of the newest configuration.
#[derive(Default)]
pub(crate) struct CacheKeeper {
    tasks: Vec<Task>,
}

impl ControlJob<Arc<Site>> for CacheKeeper {
    fn adopt(&mut self, _: &Arc<Site>, zones: &Zones) {
        self.leave();
        let keep = |store| net::spawn(keep(store));
        self.tasks = zones.all::<CacheStore>().into_iter().map(keep).collect();
    }

    /// Another process may keep the directories already.
    fn leave(&mut self) {
        self.tasks.drain(..).for_each(|task| task.stop());
    }
}

async fn keep(store: Arc<CacheStore>) {
    load(&store).await;
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
async fn load(store: &Arc<CacheStore>) {
    let mut loader = Loader::default();
    while store.zone.is_cold() {
        let (store, now_s) = (store.clone(), now_s());
        let sleep_ms = store.loader.sleep_ms;
        let (read, is_done) = offload(move || {
            let is_done = loader.step(&store.zone, &store.loader, now_s, stopwatch());
            (loader, is_done)
        })
        .await;
        loader = read;
        if !is_done {
            net::sleep(Duration::from_millis(sleep_ms)).await;
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
