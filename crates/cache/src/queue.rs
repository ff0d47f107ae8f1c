//! S3-FIFO: which entry goes when there are too many.
//!
//! ```text
//! new --> small --used again--> main --used since--> main again
//!           |                     |
//!           +--> goes, remembered +--> goes
//! remembered, and asked for again --> main
//! ```
//!
//! A tenth of the entries is on trial in the small queue, so that those used once leave before
//! those in use. The queues are lists through the entries; this module knows only their links.

use std::ops::{Index, IndexMut};

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

/// The most uses that are counted for an entry.
const USES_MAX: u8 = 3;
/// The part of the entries that are on trial: one in this many.
const TRIAL_PART: usize = 10;

/// What the queues keep in an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLinks {
    newer: u32,
    older: u32,
    /// Uses since it came or was spared.
    uses: u8,
    is_main: bool,
}

/// The entries, by number.
pub(crate) trait Linked:
    Index<usize, Output: AsMut<QueueLinks> + AsRef<QueueLinks>> + IndexMut<usize>
{
}

impl<T> Linked for T where
    T: Index<usize, Output: AsMut<QueueLinks> + AsRef<QueueLinks>> + IndexMut<usize> + ?Sized
{
}

#[derive(Debug)]
pub(crate) struct EvictionQueues {
    small: EntryList,
    main: EntryList,
    /// Fingerprints of entries that left the small queue, each at its own place.
    remembered: Vec<u32>,
}

#[derive(Debug)]
struct EntryList {
    newest: u32,
    oldest: u32,
    length: usize,
}

impl Default for QueueLinks {
    fn default() -> Self {
        Self { newer: NONE, older: NONE, uses: 0, is_main: false }
    }
}

impl QueueLinks {
    /// The uses and the queue in one byte, for the index file.
    pub(crate) fn to_byte(self) -> u8 {
        self.uses | u8::from(self.is_main) << 7
    }

    pub(crate) fn count_use(&mut self) {
        self.uses = (self.uses + 1).min(USES_MAX);
    }
}

impl EvictionQueues {
    /// For about this many entries.
    pub(crate) fn new(entries: usize) -> Self {
        let (small, main) = (EntryList::EMPTY, EntryList::EMPTY);
        Self { small, main, remembered: vec![0; entries.max(1)] }
    }

    /// Adds a new entry.
    pub(crate) fn add(&mut self, entries: &mut impl Linked, at: u32, fingerprint: u32) {
        let place = self.place(fingerprint);
        let is_main = self.remembered[place] == fingerprint && fingerprint != 0;
        if is_main {
            self.remembered[place] = 0;
        }
        *entries[at as usize].as_mut() = QueueLinks { is_main, ..QueueLinks::default() };
        self.list(is_main).push(entries, at);
    }

    /// Adds an entry where it was when [`QueueLinks::to_byte`] was called, if all come in order.
    pub(crate) fn restore(&mut self, entries: &mut impl Linked, at: u32, byte: u8) {
        let (uses, is_main) = ((byte & 0x7f).min(USES_MAX), byte & 0x80 != 0);
        *entries[at as usize].as_mut() = QueueLinks { uses, is_main, ..QueueLinks::default() };
        self.list(is_main).push(entries, at);
    }

    /// The numbers of all entries, those that come first in a queue before the others.
    pub(crate) fn in_order<'a>(
        &'a self,
        entries: &'a (impl Linked + ?Sized),
    ) -> impl Iterator<Item = u32> + 'a {
        [&self.main, &self.small].into_iter().flat_map(move |list| {
            let some = |at: u32| (at != NONE).then_some(at);
            let newer = move |at: &u32| some(entries[*at as usize].as_ref().newer);
            std::iter::successors(some(list.oldest), newer)
        })
    }

    pub(crate) fn remove(&mut self, entries: &mut impl Linked, at: u32) {
        let is_main = entries[at as usize].as_ref().is_main;
        self.list(is_main).unlink(entries, at);
    }

    /// Removes the entry that goes next. `fingerprint` tells that of an entry.
    pub(crate) fn evict<L: Linked>(
        &mut self,
        entries: &mut L,
        fingerprint: impl Fn(&L, u32) -> u32,
    ) -> Option<u32> {
        // Each step takes a use away or moves an entry on, so that the loop ends.
        loop {
            let from_main = !self.is_trial_next();
            let at = self.list(from_main).oldest;
            if at == NONE {
                return None;
            }
            self.list(from_main).unlink(entries, at);
            let links = entries[at as usize].as_mut();
            match (from_main, links.uses) {
                (true, 0) => return Some(at),
                (false, 0 | 1) => {
                    let fingerprint = fingerprint(entries, at);
                    let place = self.place(fingerprint);
                    self.remembered[place] = fingerprint;
                    return Some(at);
                }
                (true, _) => links.uses -= 1,
                (false, _) => (links.uses, links.is_main) = (0, true),
            }
            self.main.push(entries, at);
        }
    }

    /// The entry that is asked first whether it goes.
    pub(crate) fn first(&self) -> Option<u32> {
        let list = if self.is_trial_next() { &self.small } else { &self.main };
        (list.oldest != NONE).then_some(list.oldest)
    }

    fn is_trial_next(&self) -> bool {
        let all = self.small.length + self.main.length;
        self.main.length == 0 || self.small.length >= (all / TRIAL_PART).max(1)
    }

    fn list(&mut self, is_main: bool) -> &mut EntryList {
        if is_main { &mut self.main } else { &mut self.small }
    }

    fn place(&self, fingerprint: u32) -> usize {
        fingerprint as usize % self.remembered.len()
    }
}

impl EntryList {
    const EMPTY: Self = Self { newest: NONE, oldest: NONE, length: 0 };

    fn push(&mut self, entries: &mut impl Linked, at: u32) {
        let links = entries[at as usize].as_mut();
        (links.newer, links.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = at,
            newest => entries[newest as usize].as_mut().newer = at,
        }
        self.newest = at;
        self.length += 1;
    }

    fn unlink(&mut self, entries: &mut impl Linked, at: u32) {
        let QueueLinks { newer, older, .. } = *entries[at as usize].as_ref();
        match newer {
            NONE => self.newest = older,
            newer => entries[newer as usize].as_mut().older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => entries[older as usize].as_mut().newer = newer,
        }
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Entry(QueueLinks);

    impl AsRef<QueueLinks> for Entry {
        fn as_ref(&self) -> &QueueLinks {
            &self.0
        }
    }

    impl AsMut<QueueLinks> for Entry {
        fn as_mut(&mut self) -> &mut QueueLinks {
            &mut self.0
        }
    }

    struct Simulation {
        entries: Vec<Entry>,
        queues: EvictionQueues,
    }

    impl Simulation {
        fn of(count: u32) -> Self {
            let entries = (0..100).map(|_| Entry::default()).collect();
            let mut simulation = Self { entries, queues: EvictionQueues::new(100) };
            (0..count).for_each(|at| simulation.add(at));
            simulation
        }

        fn add(&mut self, at: u32) {
            self.queues.add(&mut self.entries, at, at + 1);
        }

        fn use_often(&mut self, at: u32) {
            (0..5).for_each(|_| self.entries[at as usize].0.count_use());
        }

        fn evict(&mut self) -> Option<u32> {
            self.queues.evict(&mut self.entries, |_, at| at + 1)
        }
    }

    #[test]
    fn entries_used_once_go_first_and_in_order() {
        let mut simulation = Simulation::of(20);
        simulation.use_often(0);
        simulation.use_often(7);
        let gone: Vec<_> = (0..10).filter_map(|_| simulation.evict()).collect();
        assert_eq!(gone, [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]);
    }

    #[test]
    fn an_entry_that_comes_back_soon_stays() {
        let mut simulation = Simulation::of(20);
        assert_eq!(simulation.evict(), Some(0));
        simulation.add(0);
        for at in 1..19 {
            assert_eq!(simulation.evict(), Some(at));
        }
        assert!(simulation.entries[0].0.is_main);
    }

    #[test]
    fn everything_goes_in_the_end() {
        let mut simulation = Simulation::of(50);
        (0..50).for_each(|at| simulation.use_often(at));
        simulation.queues.remove(&mut simulation.entries, 13);
        let mut gone: Vec<_> = std::iter::from_fn(|| simulation.evict()).collect();
        gone.sort_unstable();
        let expected: Vec<_> = (0..50).filter(|at| *at != 13).collect();
        assert_eq!(gone, expected);
        assert_eq!(simulation.queues.first(), None);
    }

    #[test]
    fn a_scan_does_not_displace_what_is_in_use() {
        let mut simulation = Simulation::of(10);
        (0..10).for_each(|at| simulation.use_often(at));
        for at in (10..100).chain(10..100).chain(10..100) {
            simulation.add(at);
            let gone = simulation.evict().unwrap();
            assert!(gone >= 10, "{gone} was in use");
            (0..10).for_each(|at| simulation.use_often(at));
        }
    }
}
