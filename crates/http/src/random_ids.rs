//! Random numbers for ids of requests and spans.
//!
//! As in nginx, a keyed hash of a counter: unique, and nobody's guess.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static IDS: IdSource = IdSource { key: RandomState::new(), count: Cell::new(0) };
}

struct IdSource {
    key: RandomState,
    count: Cell<u64>,
}

/// The next number of this worker.
pub(crate) fn next() -> u64 {
    IDS.with(|ids| {
        let count = ids.count.get() + 1;
        ids.count.set(count);
        ids.key.hash_one(count)
    })
}
