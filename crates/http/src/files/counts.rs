//! What the caches of files count, and where it is shown.
//!
//! The counters belong to a worker, the caches to a worker's configurations: a worker adds up what
//! its caches hold, and sets that as its level. Nothing is counted unless a page shows it.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use metrics::tree::{Items, NamedItems, StatusTree, Visitor};
use metrics::{Metric, Reading, Tally};

metrics::counts! {
    /// What a worker's caches of one kind count.
    pub struct FileCacheCounters of FileCacheCounts = 10 {
        /// Lookups that a cache answered.
        hits: Tally,
        /// Lookups that went to the file system.
        misses: Tally,
        entries: Reading,
        /// Contents in memory.
        bytes: Reading,
    }
}

/// The kinds of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheKind {
    /// Those of `open_file_cache`.
    OpenFiles,
    /// Contents of small files, without `open_file_cache`.
    Contents,
}

const KINDS: [CacheKind; 2] = [CacheKind::OpenFiles, CacheKind::Contents];

thread_local! {
    /// What all caches of this worker hold, by kind.
    static HELD: [HeldSums; KINDS.len()] = const { [const { HeldSums::none() }; KINDS.len()] };
}

struct HeldSums {
    entries: Cell<usize>,
    bytes: Cell<usize>,
}

impl HeldSums {
    const fn none() -> Self {
        Self { entries: Cell::new(0), bytes: Cell::new(0) }
    }
}

/// An entry and its bytes of content, counted until this is dropped.
pub(super) struct HeldEntry {
    kind: CacheKind,
    bytes: usize,
}

impl HeldEntry {
    pub(super) fn new(kind: CacheKind, bytes: usize) -> Self {
        HELD.with(|held| {
            let held = &held[kind as usize];
            held.entries.set(held.entries.get() + 1);
            held.bytes.set(held.bytes.get() + bytes);
        });
        Self { kind, bytes }
    }

    /// Bytes of content in all caches of this worker.
    pub(super) fn bytes_in_all() -> usize {
        HELD.with(|held| held.iter().map(|held| held.bytes.get()).sum())
    }
}

impl Drop for HeldEntry {
    fn drop(&mut self) {
        // At the end of the thread, the sums may be dropped before the cache.
        let _ = HELD.try_with(|held| {
            let held = &held[self.kind as usize];
            held.entries.set(held.entries.get() - 1);
            held.bytes.set(held.bytes.get() - self.bytes);
        });
    }
}

impl CacheKind {
    fn name(self) -> &'static [u8] {
        match self {
            Self::OpenFiles => b"open_file_cache",
            Self::Contents => b"contents",
        }
    }

    fn metric(self) -> &'static Metric<FileCacheCounts> {
        static METRICS: LazyLock<[Metric<FileCacheCounts>; KINDS.len()]> =
            LazyLock::new(|| KINDS.map(|kind| Metric::named(kind.name())));
        &METRICS[self as usize]
    }

    /// Counts a lookup, after which the caches hold what they hold now.
    #[inline]
    pub(super) fn count_lookup(self, is_hit: bool) {
        if metrics::are_wanted() {
            let own = self.metric().own();
            if is_hit { own.hits() } else { own.misses() }.add(1);
            self.set_levels(own);
        }
    }

    /// A cache of the kind has been dropped.
    pub(super) fn count_drop(self) {
        if metrics::are_wanted()
            && let Some(own) = self.metric().own_if_alive()
        {
            self.set_levels(own);
        }
    }

    fn set_levels(self, own: FileCacheCounters<'_>) {
        let _ = HELD.try_with(|held| {
            let held = &held[self as usize];
            own.entries().set(held.entries.get() as u64);
            own.bytes().set(held.bytes.get() as u64);
        });
    }
}

/// Adds the caches of all workers to what the program shows of itself.
pub(crate) fn show(tree: &mut StatusTree) {
    let items: NamedItems = KINDS
        .iter()
        .map(|kind| {
            let source = |out: &mut dyn Visitor| {
                let totals = kind.metric().totals();
                let all = totals.get();
                out.number(b"entries", all.entries().get());
                out.number(b"bytes", all.bytes().get());
                out.number(b"hits", all.hits().get());
                out.number(b"misses", all.misses().get());
            };
            (kind.name().into(), Arc::new(source) as _)
        })
        .collect();
    tree.add(&[b"file_caches"], Items::Named(items));
}
