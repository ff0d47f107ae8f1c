//! State shared by connections: global, per address, and per thread.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::faults::RequestRandom;
use super::log::ThreadLog;
use super::pool::{PoolFull, WorkerPool};
use super::reply::{BackendReply, ReplyContents, RequestFormat};
use super::settings::BackendSettings;
use super::stats::{Count, Port, Stats, ThreadCounters};

/// State shared by all threads.
pub(super) struct BackendShared {
    pub(super) settings: BackendSettings,
    pub(super) stats: Stats,
    /// Pools by address; empty if requests need no worker.
    pools: Vec<WorkerPool>,
    answer: ContentVariants,
    error: ContentVariants,
    /// The number of requests that random numbers were drawn for.
    drawn: AtomicU64,
}

/// The replies of one content for each kind of client, by `is_11` and `keeps`.
struct ContentVariants([[BackendReply; 2]; 2]);

impl ContentVariants {
    fn new(content: &ReplyContents) -> Self {
        let of = |is_11, keeps| BackendReply::new(content, RequestFormat { is_11, keeps });
        Self([false, true].map(|is_11| [false, true].map(|keeps| of(is_11, keeps))))
    }
}

impl BackendShared {
    pub(super) fn new(mut settings: BackendSettings, names: Vec<String>) -> Self {
        let content = settings.content.take().expect("settings are complete");
        let error = settings.apply_to(ReplyContents::status(settings.error_status));
        let pools = settings.pool.map(|size| {
            let line_max = settings.pool_queue.map_or(usize::MAX, |max| max as usize);
            names.iter().map(|_| WorkerPool::new(size, line_max)).collect()
        });
        let threads = settings.threads;
        let ports = names.into_iter().map(|name| Port::new(name, threads)).collect();
        Self {
            stats: Stats { ports, ..Stats::default() },
            pools: pools.unwrap_or_default(),
            answer: ContentVariants::new(&content),
            error: ContentVariants::new(&error),
            drawn: AtomicU64::new(0),
            settings,
        }
    }

    pub(super) fn answer(&self, client: RequestFormat) -> &BackendReply {
        &self.answer.0[usize::from(client.is_11)][usize::from(client.keeps)]
    }

    pub(super) fn error(&self, client: RequestFormat) -> &BackendReply {
        &self.error.0[usize::from(client.is_11)][usize::from(client.keeps)]
    }

    /// The random numbers of the next request.
    pub(super) fn random(&self) -> RequestRandom {
        // Without faults, threads share no counter here.
        let number = match self.settings.has_chances() {
            true => self.drawn.fetch_add(1, Ordering::Relaxed),
            false => 0,
        };
        RequestRandom::of(self.settings.seed, number)
    }

    /// Resets counters and schedules.
    pub(super) fn reset(&self) {
        self.stats.reset();
        self.drawn.store(0, Ordering::Relaxed);
        if let Some(pause) = &self.settings.pause {
            pause.reset();
        }
    }
}

/// An address, as one thread serves it.
pub(super) struct ServedAddress {
    pub(super) backend: Arc<BackendShared>,
    pub(super) port: usize,
    pub(super) thread: usize,
    pub(super) log: Option<Rc<ThreadLog>>,
}

impl ServedAddress {
    pub(super) fn counts(&self) -> &ThreadCounters {
        self.port().counts(self.thread)
    }

    fn port(&self) -> &Port {
        &self.backend.stats.ports[self.port]
    }
}

/// A request in progress, until it is dropped.
pub(super) struct RequestInProgress {
    place: Rc<ServedAddress>,
    has_worker: bool,
    /// The number of requests in progress when it arrived, including itself.
    number: u64,
}

impl RequestInProgress {
    pub(super) fn begin(place: &Rc<ServedAddress>) -> Self {
        place.counts().add(Count::Requests, 1);
        place.backend.stats.level.rise();
        let number = place.port().level.rise();
        Self { place: place.clone(), has_worker: false, number }
    }

    /// Waits for a worker, if there is a pool. Returns the number of requests being served,
    /// including this one.
    pub(super) async fn be_served(&mut self) -> Result<u64, PoolFull> {
        let Some(pool) = self.place.backend.pools.get(self.place.port) else {
            return Ok(self.number);
        };
        let served = pool.take().await?;
        self.has_worker = true;
        Ok(served)
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let backend = &self.place.backend;
        if self.has_worker {
            backend.pools[self.place.port].give_back();
        }
        self.place.port().level.fall();
        backend.stats.level.fall();
    }
}
