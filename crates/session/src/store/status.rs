//! The status of stores, for pages and metrics.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::tree::{Items, StatusTree, TreeSource, Visitor};

/// How the exchange with one store is doing.
#[derive(Default)]
pub struct StoreStatus {
    shown: String,
    pub(super) is_up: AtomicU64,
    pub(super) nodes: AtomicU64,
    pub(super) masters: AtomicU64,
    /// The last exchange, in milliseconds since 1970.
    pub(super) exchanged_at_ms: AtomicU64,
    pub(super) exchanges: AtomicU64,
    pub(super) failures: AtomicU64,
    keys: AtomicU64,
    pub(super) keys_waiting: AtomicU64,
    keys_refused: AtomicU64,
    keys_invalid: AtomicU64,
}

static SHOWN: Mutex<Vec<Arc<StoreStatus>>> = Mutex::new(Vec::new());

impl StoreStatus {
    /// The status of a store, with what was counted before.
    pub(super) fn of(shown: String) -> Arc<Self> {
        let mut all = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.shown == shown) {
            return known.clone();
        }
        let status = Arc::new(Self { shown, ..Self::default() });
        all.push(status.clone());
        status
    }

    /// The store is not used any more.
    pub(super) fn forget(self: &Arc<Self>) {
        let mut all = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| !Arc::ptr_eq(known, self));
    }

    /// Counts a member's keys of a pipeline, and those that wait for a later one.
    pub fn count_keys(&self, exchanged: usize, waiting: usize) {
        self.keys.fetch_add(exchanged as u64, Relaxed);
        self.keys_waiting.fetch_add(waiting as u64, Relaxed);
    }

    /// Counts keys of other machines that a table has no room for, and those it cannot have.
    pub fn count_left_out(&self, refused: u64, invalid: u64) {
        self.keys_refused.fetch_add(refused, Relaxed);
        self.keys_invalid.fetch_add(invalid, Relaxed);
    }
}

/// Adds the stores to the program's status tree.
pub fn show(tree: &mut StatusTree) {
    let all = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let named = all.into_iter().map(|status| {
        let name = status.shown.as_bytes().into();
        let source: Arc<dyn TreeSource> = Arc::new(move |out: &mut dyn Visitor| {
            out.number(b"up", status.is_up.load(Relaxed));
            out.number(b"nodes", status.nodes.load(Relaxed));
            out.number(b"masters", status.masters.load(Relaxed));
            out.number(b"exchanged_at", status.exchanged_at_ms.load(Relaxed));
            out.number(b"exchanges", status.exchanges.load(Relaxed));
            out.number(b"failures", status.failures.load(Relaxed));
            out.number(b"keys", status.keys.load(Relaxed));
            out.number(b"keys_waiting", status.keys_waiting.load(Relaxed));
            out.number(b"keys_refused", status.keys_refused.load(Relaxed));
            out.number(b"keys_invalid", status.keys_invalid.load(Relaxed));
        });
        (name, source)
    });
    tree.add(&[b"stores"], Items::Named(named.collect()));
}
