//! A zone: the index of one cache directory, for all workers of a process.
//!
//! The index has 64 shards, each with a lock of its own, which is held for a few memory accesses.
//! Files are not opened here. An entry without a file, or a file without an entry, is found out
//! when it is used ([`CacheZone::lost`], [`CacheZone::store`]) or by [`crate::upkeep`].

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fills::{Fill, FillFailures, FillWaiter, PendingFills};
use crate::folder::CacheFolder;
use crate::index::{EntryState, IndexEntry, IndexShard, SavedEntry};
use crate::key::KeyDigest;
use crate::purge::ledger::ZonePurges;
use crate::variants::VariantLists;

/// The number of shards; a power of two.
const SHARDS: usize = 64;
/// The bytes of a zone for each key, as in nginx.
const BYTES_PER_KEY: u64 = 128;
/// The bytes of a zone in which nginx has no keys.
const BYTES_AROUND: u64 = 8192;
/// The keys of the smallest zone.
const KEYS_MIN: usize = 32;
/// The size of a block of a file.
pub const BLOCK_BYTES: u64 = 512;

/// The index of a cache directory.
#[derive(Debug)]
pub struct CacheZone {
    folder: CacheFolder,
    shards: Box<[Mutex<ZoneShard>]>,
    entries_max: usize,
    entries: AtomicUsize,
    /// The blocks of all files.
    blocks: AtomicU64,
    /// The bytes that fills in progress have room for.
    reserved: AtomicU64,
    /// The number of entries that is not exceeded for long, once the zone was full.
    watermark: AtomicUsize,
    next_ticket: AtomicU64,
    /// Whether there may be files that have no entry, because the directory was not read yet.
    is_cold: AtomicBool,
    /// Whether files of an earlier process are those that a clean end has left.
    is_trusted: AtomicBool,
    pub(crate) purges: ZonePurges,
}

#[derive(Debug)]
pub(crate) struct ZoneShard {
    index: IndexShard,
    pub(crate) fills: PendingFills,
    variants: VariantLists,
}

/// What the index knows about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It has a file.
    Stored,
    /// It has a file of an earlier process.
    Loaded,
    /// It may have a file. `is_scarce`: without one it is [`KeyState::Scarce`].
    Unread {
        is_scarce: bool,
    },
    Missing,
    /// It was requested too rarely to be stored.
    Scarce,
    /// The reply was this error, when the newest purge was `purge_ns`.
    Error {
        status: u16,
        purge_ns: u64,
    },
    /// The last reply could not be stored, so that waiting for the next is of no use.
    Uncacheable,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    pub inode: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
}

impl CacheZone {
    /// An index of `size` bytes, as nginx counts them.
    pub fn new(folder: CacheFolder, size: u64) -> Self {
        let entries_max = size.saturating_sub(BYTES_AROUND) / BYTES_PER_KEY;
        let entries_max = usize::try_from(entries_max).unwrap_or(usize::MAX).max(KEYS_MIN);
        let shard = || ZoneShard {
            index: IndexShard::new(entries_max / SHARDS),
            fills: PendingFills::default(),
            variants: VariantLists::default(),
        };
        let purges = ZonePurges::new(&folder.path);
        Self {
            folder,
            purges,
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            entries_max,
            entries: AtomicUsize::new(0),
            blocks: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            watermark: AtomicUsize::new(usize::MAX),
            next_ticket: AtomicU64::new(0),
            is_cold: AtomicBool::new(true),
            is_trusted: AtomicBool::new(false),
        }
    }

    pub fn folder(&self) -> &CacheFolder {
        &self.folder
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// The most entries.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// The size of all files on disk, in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed).saturating_mul(BLOCK_BYTES)
    }

    /// The same, with the room of fills in progress.
    pub fn bytes_with_fills(&self) -> u64 {
        self.bytes().saturating_add(self.reserved.load(Ordering::Relaxed))
    }

    pub(crate) fn reserve(&self, bytes: u64) {
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether the directory was not read yet.
    pub fn is_cold(&self) -> bool {
        self.is_cold.load(Ordering::Relaxed)
    }

    /// Whether files of an earlier process are those that a clean end has left, so that none of
    /// them is torn.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted.load(Ordering::Relaxed)
    }

    pub(crate) fn set_trusted(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_warm(&self) {
        self.is_cold.store(false, Ordering::Relaxed);
    }

    /// Counts a request for a key that is stored after `uses_min` requests, and tells what is known
    /// of it.
    pub fn find(&self, digest: &KeyDigest, uses_min: u32, now_s: i64) -> KeyState {
        let now_s = seconds(now_s);
        let mut shard = self.shard(digest);
        let Some(entry) = shard.index.find(digest) else {
            drop(shard);
            let is_scarce = uses_min > 1;
            if is_scarce {
                self.update(digest, now_s, |entry| entry.count_use(now_s));
            }
            return match (self.is_cold(), is_scarce) {
                (true, is_scarce) => KeyState::Unread { is_scarce },
                (false, true) => KeyState::Scarce,
                (false, false) => KeyState::Missing,
            };
        };
        entry.count_use(now_s);
        match entry.state {
            EntryState::Stored => KeyState::Stored,
            EntryState::Loaded => KeyState::Loaded,
            EntryState::Error(status) if now_s <= entry.until_s => {
                KeyState::Error { status, purge_ns: entry.mark }
            }
            EntryState::Uncacheable if now_s <= entry.until_s => KeyState::Uncacheable,
            EntryState::Counted if entry.uses < uses_min => KeyState::Scarce,
            _ => KeyState::Missing,
        }
    }

    /// A file of the key was put in its place, or found there.
    pub fn store(&self, digest: &KeyDigest, file: FileFacts, now_s: i64) {
        self.add_file(digest, file, EntryState::Stored, now_s);
    }

    fn add_file(&self, digest: &KeyDigest, file: FileFacts, state: EntryState, now_s: i64) {
        let blocks = u32::try_from(file.blocks).unwrap_or(u32::MAX);
        let before = self.update(digest, seconds(now_s), |entry| {
            (entry.state, entry.mark, entry.until_s) = (state, file.inode, 0);
            std::mem::replace(&mut entry.blocks, blocks)
        });
        self.blocks.fetch_add(blocks.into(), Ordering::Relaxed);
        self.blocks.fetch_sub(before.into(), Ordering::Relaxed);
    }

    /// Adds a file that the loader found, unless the zone is full.
    pub(crate) fn load(&self, digest: &KeyDigest, file: FileFacts, now_s: i64) -> bool {
        if self.entries() >= self.entries_max {
            self.lower_watermark();
            return false;
        }
        let mut shard = self.shard(digest);
        let is_known = shard.index.find(digest).is_some_and(|entry| entry.state.has_file());
        drop(shard);
        if !is_known {
            self.add_file(digest, file, EntryState::Loaded, now_s);
        }
        true
    }

    /// The files of a shard, in the order of its queues.
    pub(crate) fn saved(&self, shard: usize) -> Vec<SavedEntry> {
        let shard = lock(&self.shards[shard]);
        let files = shard.index.in_order().filter(|(entry, _)| entry.state.has_file());
        let saved = |(entry, queue): (&IndexEntry, u8)| SavedEntry {
            digest: entry.digest,
            blocks: entry.blocks,
            used_s: entry.used_s,
            uses: entry.uses,
            queue,
        };
        files.map(saved).collect()
    }

    /// Adds a file that an earlier process had, unless there is an entry or the zone is full.
    pub(crate) fn restore(&self, saved: &SavedEntry) {
        let mut shard = self.shard(&saved.digest);
        if self.entries() >= self.entries_max || shard.index.find(&saved.digest).is_some() {
            return;
        }
        let entry = shard.index.restore(&saved.digest, saved.used_s, saved.queue);
        (entry.state, entry.blocks, entry.uses) = (EntryState::Loaded, saved.blocks, saved.uses);
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.blocks.fetch_add(saved.blocks.into(), Ordering::Relaxed);
    }

    /// The key has no file, or none that can be used.
    pub fn lost(&self, digest: &KeyDigest) {
        let mut shard = self.shard(digest);
        if shard.index.find(digest).is_some_and(|entry| entry.state.has_file()) {
            let removed = shard.index.remove(digest);
            drop(shard);
            self.forget(removed.as_ref());
        }
    }

    /// Removes a key and its file. Returns whether there was one.
    pub fn remove(&self, digest: &KeyDigest) -> bool {
        let removed = self.shard(digest).index.remove(digest);
        self.forget(removed.as_ref());
        fs::remove_file(self.folder.file(digest)).is_ok()
    }

    /// A variant of a key, which is not the first, was stored or found. The oldest one is removed
    /// if there are more than `most` now.
    pub fn note_variant(&self, main: &KeyDigest, variant: &KeyDigest, most: usize) {
        let length_max = 2 * self.entries_max / SHARDS;
        let oldest = self.shard(main).variants.add(main, *variant, most, length_max.max(most));
        if let Some(oldest) = oldest {
            self.remove(&oldest);
        }
    }

    /// Whether a variant was noted, so that [`remove_variants`](Self::remove_variants) includes it.
    pub fn knows_variant(&self, main: &KeyDigest, variant: &KeyDigest) -> bool {
        self.shard(main).variants.has(main, variant)
    }

    /// Removes a key with its variants, as far as they are known.
    pub fn remove_variants(&self, main: &KeyDigest) {
        let variants = self.shard(main).variants.take(main);
        for digest in variants.iter().chain([main]) {
            self.remove(digest);
        }
    }

    /// Remembers an error that has no file, of a request that began when the newest purge was
    /// `purge_ns`.
    pub fn remember_error(
        &self,
        digest: &KeyDigest,
        status: u16,
        purge_ns: u64,
        until_s: i64,
        now_s: i64,
    ) {
        self.update(digest, seconds(now_s), |entry| {
            if !entry.state.has_file() {
                (entry.state, entry.until_s) = (EntryState::Error(status), seconds(until_s));
                entry.mark = purge_ns;
            }
        });
    }

    /// Remembers that the reply could not be stored, also of a key that has a file.
    pub fn remember_uncacheable(&self, digest: &KeyDigest, until_s: i64, now_s: i64) {
        self.update(digest, seconds(now_s), |entry| {
            if !entry.state.has_file() {
                entry.state = EntryState::Uncacheable;
            }
            entry.until_s = seconds(until_s);
        });
    }

    /// Whether the last reply for a key that has a file could not be stored.
    pub fn is_uncacheable(&self, digest: &KeyDigest, now_s: i64) -> bool {
        let mut shard = self.shard(digest);
        let entry = shard.index.find(digest).filter(|entry| entry.state.has_file());
        entry.is_some_and(|entry| seconds(now_s) <= entry.until_s)
    }

    /// Takes the right to fetch a key. `None`: another has had it for less than `age_ms`.
    /// `failures`: those for which it has waited.
    pub fn begin_fill(
        self: &Arc<Self>,
        digest: &KeyDigest,
        now_ms: u64,
        age_ms: u64,
        failures: Option<Arc<FillFailures>>,
    ) -> Option<Fill> {
        let ticket = self.ticket();
        let begun = self.shard(digest).fills.begin(*digest, ticket, now_ms, age_ms, failures);
        begun.then(|| Fill::new(self.clone(), *digest, ticket))
    }

    /// Whether somebody fetches the key.
    pub fn is_filling(&self, digest: &KeyDigest) -> bool {
        self.shard(digest).fills.is_filling(digest)
    }

    /// Waits for the fill of a key.
    pub fn wait(self: &Arc<Self>, digest: &KeyDigest) -> FillWaiter {
        FillWaiter::new(self.clone(), *digest, self.ticket())
    }

    fn ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes the entry of a key, which is made if there is none. Another one goes if the zone is
    /// full.
    fn update<T>(
        &self,
        digest: &KeyDigest,
        now_s: u32,
        change: impl FnOnce(&mut IndexEntry) -> T,
    ) -> T {
        let mut shard = self.shard(digest);
        if let Some(entry) = shard.index.find(digest) {
            return change(entry);
        }
        let is_full = self.entries.fetch_add(1, Ordering::Relaxed) >= self.entries_max;
        let evicted = if is_full { shard.index.evict() } else { None };
        let changed = change(shard.index.insert(digest, now_s));
        drop(shard);
        if is_full {
            self.lower_watermark();
            match evicted {
                Some(evicted) => self.discard(&evicted),
                // The shard is empty, so that another shard has to give.
                None => _ = self.evict(),
            }
        }
        changed
    }

    /// Removes the entry that is the least use to keep, of the shard whose first candidate is the
    /// oldest, with its file. Returns whether there was one.
    pub(crate) fn evict(&self) -> bool {
        let oldest = |shard: &Mutex<ZoneShard>| lock(shard).index.oldest_s();
        let shards = self.shards.iter().filter_map(|shard| Some((oldest(shard)?, shard)));
        let Some((_, shard)) = shards.min_by_key(|(used_s, _)| *used_s) else { return false };
        let evicted = lock(shard).index.evict();
        evicted.inspect(|evicted| self.discard(evicted)).is_some()
    }

    /// Forgets an entry that was removed, and removes its file.
    fn discard(&self, entry: &IndexEntry) {
        self.forget(Some(entry));
        if entry.state.has_file() {
            // Whoever removed it already has done the same.
            let _ = fs::remove_file(self.folder.file(&entry.digest));
        }
    }

    fn forget(&self, removed: Option<&IndexEntry>) {
        if let Some(entry) = removed {
            self.entries.fetch_sub(1, Ordering::Relaxed);
            self.blocks.fetch_sub(entry.blocks.into(), Ordering::Relaxed);
        }
    }

    /// The zone was full: from now on an eighth of it is kept free, as in nginx.
    fn lower_watermark(&self) {
        let watermark = self.entries_max - self.entries_max / 8;
        self.watermark.store(watermark, Ordering::Relaxed);
    }

    pub(crate) fn is_above_watermark(&self) -> bool {
        self.entries() >= self.watermark.load(Ordering::Relaxed)
    }

    /// Removes an entry of a shard that was not used since, with its file. `at` is where the sweep
    /// of the shard is; `None`: it is over. At most `count` entries are looked at.
    pub(crate) fn remove_unused(
        &self,
        shard: usize,
        at: usize,
        since_s: i64,
        count: usize,
    ) -> (bool, Option<usize>) {
        let mut shard = lock(&self.shards[shard]);
        let (digest, next) = shard.index.unused(at, seconds(since_s), count);
        let removed = digest.and_then(|digest| shard.index.remove(&digest));
        drop(shard);
        (removed.inspect(|removed| self.discard(removed)).is_some(), next)
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn shard(&self, digest: &KeyDigest) -> MutexGuard<'_, ZoneShard> {
        let [.., last] = digest.0;
        lock(&self.shards[usize::from(last) % SHARDS])
    }
}

/// A shard has no state in between that a panic could leave behind.
fn lock(shard: &Mutex<ZoneShard>) -> MutexGuard<'_, ZoneShard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970 as entries have them.
fn seconds(time_s: i64) -> u32 {
    u32::try_from(time_s.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicU32;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;
    use crate::fills::{FillEnd, FillFailure};

    const FILE: FileFacts = FileFacts { inode: 1, blocks: 8 };

    fn zone(keys: u64) -> Arc<CacheZone> {
        let path = Path::new("/nonexistent").into();
        let zone =
            CacheZone::new(CacheFolder { path, levels: Default::default() }, 8192 + keys * 128);
        zone.set_warm();
        Arc::new(zone)
    }

    fn key(number: u32) -> KeyDigest {
        KeyDigest::of(&number.to_le_bytes())
    }

    #[test]
    fn a_key_is_stored_once_it_was_used_often_enough() {
        let zone = zone(10);
        assert_eq!(zone.find(&key(1), 1, 5), KeyState::Missing);
        assert_eq!(zone.entries(), 0);
        let found: Vec<_> = (0..4).map(|_| zone.find(&key(1), 3, 5)).collect();
        assert_eq!(
            found,
            [KeyState::Scarce, KeyState::Scarce, KeyState::Missing, KeyState::Missing]
        );
        zone.store(&key(1), FILE, 5);
        assert_eq!(zone.find(&key(1), 3, 5), KeyState::Stored);
        zone.lost(&key(1));
        assert_eq!((zone.find(&key(1), 3, 5), zone.bytes()), (KeyState::Scarce, 0));
    }

    #[test]
    fn a_cold_zone_does_not_know_what_it_has() {
        let zone = CacheZone::new(zone(1).folder().clone(), 1280);
        assert_eq!(zone.find(&key(1), 1, 5), KeyState::Unread { is_scarce: false });
        assert_eq!(zone.find(&key(2), 2, 5), KeyState::Unread { is_scarce: true });
        assert_eq!(zone.find(&key(2), 2, 5), KeyState::Missing);
    }

    #[test]
    fn errors_are_remembered_for_a_while() {
        let zone = zone(10);
        zone.remember_error(&key(1), 502, 7, 9, 5);
        zone.remember_uncacheable(&key(2), 9, 5);
        for (now_s, first, second) in [
            (9, KeyState::Error { status: 502, purge_ns: 7 }, KeyState::Uncacheable),
            (10, KeyState::Missing, KeyState::Missing),
        ] {
            assert_eq!(zone.find(&key(1), 1, now_s), first);
            assert_eq!(zone.find(&key(2), 1, now_s), second);
        }
        zone.store(&key(2), FILE, 5);
        zone.remember_uncacheable(&key(2), 9, 5);
        assert_eq!(zone.find(&key(2), 1, 5), KeyState::Stored);
    }

    #[test]
    fn sizes_are_those_of_all_files() {
        let zone = zone(10);
        zone.store(&key(1), FILE, 5);
        zone.store(&key(1), FileFacts { inode: 2, blocks: 3 }, 5);
        zone.store(&key(2), FILE, 5);
        assert_eq!((zone.bytes(), zone.entries()), (11 * 512, 2));
        assert!(!zone.remove(&key(1)));
        assert_eq!((zone.bytes(), zone.entries()), (8 * 512, 1));
    }

    #[test]
    fn a_full_zone_has_as_many_keys_as_nginx_and_no_more() {
        let zone = zone(100);
        (0..1000).for_each(|number| zone.store(&key(number), FILE, i64::from(number)));
        assert_eq!((zone.entries(), zone.bytes()), (100, 100 * 8 * 512));
        assert!(zone.is_above_watermark());
        while zone.is_above_watermark() {
            assert!(zone.evict());
        }
        assert_eq!(zone.entries(), 87);
        assert!(!zone.load(&key(1), FILE, 5) || zone.entries() <= 100);
    }

    #[test]
    fn entries_that_are_not_used_are_removed() {
        let zone = zone(100);
        (0..50).for_each(|number| zone.store(&key(number), FILE, i64::from(number)));
        for shard in 0..zone.shards() {
            let mut at = Some(0);
            while let Some(from) = at {
                at = zone.remove_unused(shard, from, 39, 3).1;
            }
        }
        assert_eq!(zone.entries(), 10);
    }

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_fetches_and_the_others_are_woken_at_once() {
        let zone = zone(10);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let cx = &mut Context::from_waker(&waker);
        let fill = zone.begin_fill(&key(1), 100, 50, None).unwrap();
        assert!(zone.begin_fill(&key(1), 149, 50, None).is_none());
        assert!(zone.begin_fill(&key(2), 100, 50, None).is_some());
        let mut waiters: Vec<_> = (0..3).map(|_| zone.wait(&key(1))).collect();
        let mut until_ms = 0;
        for _ in 0..2 {
            for waiter in &mut waiters {
                assert_eq!(waiter.poll(cx, 100, &mut until_ms), Poll::Pending);
            }
        }
        assert_eq!(until_ms, 150);
        waiters.pop();
        drop(fill);
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        assert_eq!(waiters[0].poll(cx, 100, &mut until_ms), Poll::Ready(FillEnd::Ended));
    }

    #[test]
    fn those_who_wait_are_told_of_the_failure_although_another_fill_has_begun() {
        let zone = zone(10);
        let cx = &mut Context::from_waker(Waker::noop());
        let fill = zone.begin_fill(&key(1), 0, 50, None).unwrap();
        let (mut waiter, mut until_ms) = (zone.wait(&key(1)), 0);
        assert_eq!(waiter.poll(cx, 0, &mut until_ms), Poll::Pending);
        let failure = FillFailure { status: 502, reasons: 1, is_error: true, was_sent: false };
        let mut late = zone.wait(&key(1));
        assert_eq!(late.poll(cx, 0, &mut until_ms), Poll::Pending);
        fill.fail(failure);
        let other = zone.begin_fill(&key(1), 0, 50, None).unwrap();
        let ended = waiter.poll(cx, 0, &mut until_ms);
        assert_eq!(ended, Poll::Ready(FillEnd::Failed(failure, 1)));
        assert_eq!(zone.wait(&key(1)).poll(cx, 0, &mut until_ms), Poll::Pending);
        drop(other);
        // Whoever has waited continues the row, also for those who have not looked meanwhile.
        let next = zone.begin_fill(&key(1), 0, 50, waiter.failures()).unwrap();
        next.fail(failure);
        let ended = late.poll(cx, 0, &mut until_ms);
        assert_eq!(ended, Poll::Ready(FillEnd::Failed(failure, 2)));
    }

    #[test]
    fn an_entry_with_a_file_is_known_to_be_uncacheable() {
        let zone = zone(10);
        zone.store(&key(1), FILE, 5);
        assert!(!zone.is_uncacheable(&key(1), 5));
        zone.remember_uncacheable(&key(1), 7, 5);
        assert!(zone.is_uncacheable(&key(1), 7) && !zone.is_uncacheable(&key(1), 8));
        assert_eq!(zone.find(&key(1), 1, 5), KeyState::Stored);
        zone.store(&key(1), FILE, 6);
        assert!(!zone.is_uncacheable(&key(1), 7));
    }

    #[test]
    fn a_fill_that_is_too_old_is_not_waited_for() {
        let zone = zone(10);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let cx = &mut Context::from_waker(&waker);
        let old = zone.begin_fill(&key(1), 100, 50, None).unwrap();
        let mut waiter = zone.wait(&key(1));
        let mut until_ms = 0;
        assert_eq!(waiter.poll(cx, 150, &mut until_ms), Poll::Ready(FillEnd::TooOld));
        let new = zone.begin_fill(&key(1), 150, 50, None).unwrap();
        assert_eq!(waiter.poll(cx, 150, &mut until_ms), Poll::Pending);
        drop(old);
        assert!(zone.is_filling(&key(1)) && woken.0.load(Ordering::Relaxed) == 0);
        drop(new);
        assert!(!zone.is_filling(&key(1)) && woken.0.load(Ordering::Relaxed) == 1);
    }
}
