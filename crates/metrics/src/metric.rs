//! What is counted under one name, and each worker's block of it.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::kind::Kind;
use crate::ledger::{self, BlockName, LedgerHandle};

/// What is counted under one name. Its copies, and all metrics of that kind and name in this
/// process, are one.
pub struct Metric<K> {
    handle: Arc<MetricHandle>,
    kind: PhantomData<fn() -> K>,
}

/// The sum of all blocks of a metric.
pub struct Totals<K> {
    words: Box<[AtomicU64]>,
    kind: PhantomData<fn() -> K>,
}

/// A metric without its kind.
struct MetricHandle {
    name: BlockName,
    /// Where workers keep their blocks of it; another metric may get the same place later.
    place: usize,
    /// Different for every handle.
    serial: u64,
}

impl<K> fmt::Debug for Metric<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.handle.name)
    }
}

impl<K> Clone for Metric<K> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), kind: PhantomData }
    }
}

impl<K: Kind> Metric<K> {
    pub fn named(name: &[u8]) -> Self {
        let name = BlockName::new(K::ID, name);
        let mut ledger = ledger::process();
        let known = ledger.handles.get(&name).and_then(Weak::upgrade);
        let known = known.and_then(|known| known.downcast::<MetricHandle>().ok());
        let handle = known.unwrap_or_else(|| {
            let made = Arc::new(MetricHandle::new(name.clone()));
            let held: Arc<LedgerHandle> = made.clone();
            ledger.handles.insert(name, Arc::downgrade(&held));
            made
        });
        Self { handle, kind: PhantomData }
    }

    /// The names of this kind that have been counted and begin so.
    pub fn names_with(prefix: &[u8]) -> Vec<Box<[u8]>> {
        ledger::process().names_with(K::ID, prefix)
    }

    /// This worker's block.
    #[inline]
    pub fn own(&self) -> K::Block<'static> {
        K::block(self.handle.own::<K>())
    }

    /// The same; `None` once the worker's thread has given its blocks up.
    pub fn own_if_alive(&self) -> Option<K::Block<'static>> {
        OWN.try_with(|_| ()).ok().map(|()| self.own())
    }

    /// What all workers have counted.
    pub fn totals(&self) -> Totals<K> {
        let words = (0..K::WORDS).map(|_| AtomicU64::new(0)).collect();
        let totals = Totals { words, kind: PhantomData };
        self.parts().for_each(|part| K::merge(&totals.words, part));
        totals
    }

    /// Begins all counts anew; levels stay. Only one thread of all processes may call this: its own
    /// block is what takes the counts of the others out of the sum.
    pub fn reset(&self) {
        let own = self.handle.own::<K>();
        K::reset(own, &self.totals().words);
    }

    /// The blocks of all workers.
    pub fn blocks(&self) -> impl Iterator<Item = K::Block<'static>> + use<K> {
        self.parts().map(K::block)
    }

    /// The blocks of the workers that there are.
    pub fn live_blocks(&self) -> impl Iterator<Item = K::Block<'static>> + use<K> {
        ledger::process().live_blocks(&self.handle.name).into_iter().map(K::block)
    }

    fn parts(&self) -> impl Iterator<Item = &'static [AtomicU64]> + use<K> {
        ledger::process().blocks(&self.handle.name, K::settle).into_iter()
    }
}

impl<K: Kind> Totals<K> {
    pub fn get(&self) -> K::Block<'_> {
        K::block(&self.words)
    }
}

impl MetricHandle {
    fn new(name: BlockName) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let mut places = places();
        let place = places.free.pop().unwrap_or_else(|| {
            places.count += 1;
            places.count - 1
        });
        Self { name, place, serial: SERIAL.fetch_add(1, Ordering::Relaxed) }
    }

    #[inline]
    fn own<K: Kind>(&self) -> &'static [AtomicU64] {
        let kept = OWN.with_borrow(|own| match own.kept.get(self.place) {
            Some((serial, words)) if *serial == self.serial => Some(*words),
            _ => None,
        });
        kept.unwrap_or_else(|| self.claim::<K>())
    }

    /// The first time that this worker counts here.
    #[cold]
    fn claim<K: Kind>(&self) -> &'static [AtomicU64] {
        OWN.with_borrow_mut(|own| {
            let given = ledger::process().claim(&self.name, K::WORDS, own.thread);
            let words = match given {
                None => nowhere(),
                Some(given) => {
                    if given.was_killed {
                        K::settle(given.counters);
                    }
                    own.had.push(given.at);
                    given.counters
                }
            };
            if own.kept.len() <= self.place {
                own.kept.resize(self.place + 1, (0, &[]));
            }
            own.kept[self.place] = (self.serial, words);
            words
        })
    }
}

impl Drop for MetricHandle {
    fn drop(&mut self) {
        ledger::process().forget(&self.name, self);
        places().free.push(self.place);
    }
}

thread_local! {
    static OWN: RefCell<OwnBlocks> = RefCell::new(OwnBlocks::new());
}

/// The blocks of this worker.
struct OwnBlocks {
    thread: u32,
    /// By the metric's place, with the metric's serial number.
    kept: Vec<(u64, &'static [AtomicU64])>,
    /// Where its blocks are.
    had: Vec<usize>,
}

impl OwnBlocks {
    fn new() -> Self {
        static THREAD: AtomicU32 = AtomicU32::new(0);
        let thread = THREAD.fetch_add(1, Ordering::Relaxed);
        Self { thread, kept: Vec::new(), had: Vec::new() }
    }
}

impl Drop for OwnBlocks {
    fn drop(&mut self) {
        ledger::process().leave(self.thread, &self.had);
    }
}

/// Where workers keep their blocks of a metric.
#[derive(Default)]
struct MetricPlaces {
    free: Vec<usize>,
    count: usize,
}

fn places() -> std::sync::MutexGuard<'static, MetricPlaces> {
    static PLACES: Mutex<MetricPlaces> = Mutex::new(MetricPlaces { free: Vec::new(), count: 0 });
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Words that nobody reads, where counts go for which there is no memory.
fn nowhere() -> &'static [AtomicU64] {
    /// No kind has more.
    const WORDS_MAX: usize = 4096;
    static NOWHERE: OnceLock<Box<[AtomicU64]>> = OnceLock::new();
    NOWHERE.get_or_init(|| (0..WORDS_MAX).map(|_| AtomicU64::new(0)).collect())
}
