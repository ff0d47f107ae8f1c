//! Numbers of connections.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that a thread reserves at once.
const BLOCK: u64 = 64;

/// The number of a new connection, to a client or a server: unique in the process. Threads reserve
/// blocks, so that they access the shared counter once per [`BLOCK`] connections.
pub fn connection_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let (mut next, mut end) = OWN.get();
    if next == end {
        next = NEXT.fetch_add(BLOCK, Ordering::Relaxed);
        end = next + BLOCK;
    }
    OWN.set((next + 1, end));
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_numbers_are_unique_across_threads() {
        let take = || (0..1000).map(|_| connection_number()).collect::<Vec<_>>();
        let others = std::thread::spawn(take);
        let mut all = take();
        all.extend(others.join().unwrap());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
    }
}
