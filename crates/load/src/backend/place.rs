//! State shared by connections: global, per address, and per thread.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::log::Log;
use super::misfortune::Luck;
use super::pool::{Full, Pool};
use super::reply::{Client, Content, Reply};
use super::settings::Settings;
use super::stats::{Count, Counts, Port, Stats};

/// State shared by all threads.
pub(super) struct Backend {
    pub(super) settings: Settings,
    pub(super) stats: Stats,
    /// By address; empty: nobody waits for a worker.
    pools: Vec<Pool>,
    answer: Kind,
    error: Kind,
    /// Requests that chance was asked about.
    drawn: AtomicU64,
}

/// One content, as each kind of client gets it: by `is_11` and `keeps`.
struct Kind([[Reply; 2]; 2]);

impl Kind {
    fn new(content: &Content) -> Self {
        let of = |is_11, keeps| Reply::new(content, Client { is_11, keeps });
        Self([false, true].map(|is_11| [false, true].map(|keeps| of(is_11, keeps))))
    }
}

impl Backend {
    /// A backend with these addresses.
    pub(super) fn new(mut settings: Settings, names: Vec<String>) -> Self {
        let content = settings.content.take().expect("settings are complete");
        let error = settings.dress(Content::status(settings.error_status));
        let pools = settings.pool.map(|size| {
            let line_max = settings.pool_queue.map_or(usize::MAX, |max| max as usize);
            names.iter().map(|_| Pool::new(size, line_max)).collect()
        });
        let threads = settings.threads;
        let ports = names.into_iter().map(|name| Port::new(name, threads)).collect();
        Self {
            stats: Stats { ports, ..Stats::default() },
            pools: pools.unwrap_or_default(),
            answer: Kind::new(&content),
            error: Kind::new(&error),
            drawn: AtomicU64::new(0),
            settings,
        }
    }

    pub(super) fn answer(&self, client: Client) -> &Reply {
        &self.answer.0[usize::from(client.is_11)][usize::from(client.keeps)]
    }

    pub(super) fn error(&self, client: Client) -> &Reply {
        &self.error.0[usize::from(client.is_11)][usize::from(client.keeps)]
    }

    /// The chances of the next request.
    pub(super) fn luck(&self) -> Luck {
        // Where nothing is left to chance no thread waits for another here.
        let number = match self.settings.has_chances() {
            true => self.drawn.fetch_add(1, Ordering::Relaxed),
            false => 0,
        };
        Luck::of(self.settings.seed, number)
    }

    /// Everything from the beginning.
    pub(super) fn reset(&self) {
        self.stats.reset();
        self.drawn.store(0, Ordering::Relaxed);
        if let Some(pause) = &self.settings.pause {
            pause.reset();
        }
    }
}

/// An address, as one thread serves it.
pub(super) struct Place {
    pub(super) backend: Arc<Backend>,
    pub(super) port: usize,
    pub(super) thread: usize,
    pub(super) log: Option<Rc<Log>>,
}

impl Place {
    pub(super) fn counts(&self) -> &Counts {
        self.port().counts(self.thread)
    }

    fn port(&self) -> &Port {
        &self.backend.stats.ports[self.port]
    }
}

/// A request in progress, until it is dropped.
pub(super) struct Turn {
    place: Rc<Place>,
    has_worker: bool,
    /// How many were in progress with it when it came.
    number: u64,
}

impl Turn {
    /// A request has come.
    pub(super) fn begin(place: &Rc<Place>) -> Self {
        place.counts().add(Count::Requests, 1);
        place.backend.stats.level.rise();
        let number = place.port().level.rise();
        Self { place: place.clone(), has_worker: false, number }
    }

    /// Waits until it is served, where not all are at once; answers how many are with it.
    pub(super) async fn be_served(&mut self) -> Result<u64, Full> {
        let Some(pool) = self.place.backend.pools.get(self.place.port) else {
            return Ok(self.number);
        };
        let served = pool.take().await?;
        self.has_worker = true;
        Ok(served)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let backend = &self.place.backend;
        if self.has_worker {
            backend.pools[self.place.port].give_back();
        }
        self.place.port().level.fall();
        backend.stats.level.fall();
    }
}
