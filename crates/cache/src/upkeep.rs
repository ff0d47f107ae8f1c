//! Upkeep of a cache directory: reads it at the start, and keeps it within its limits.
//!
//! Both are done in steps with a budget, which whoever has the threads and clocks calls: a step of
//! the [`Loader`] reads some files' names and sizes, one of the [`CacheUpkeep`] removes some files.

use std::fs::{self, DirEntry, ReadDir};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::file_head::FIXED_BYTES;
use crate::folder::{FileKind, LEVELS_MAX};
use crate::zone::{BLOCK_BYTES, CacheZone, FileFacts};

/// A temporary file that was not written for this time is what a crash left behind.
const ABANDONED_AFTER_S: i64 = 600;
/// The entries that the sweep looks at under one lock.
const SWEEP_ENTRIES: usize = 1024;
/// The longest time between two steps of the upkeep.
const DELAY_MAX_MS: u64 = 10_000;
/// The shortest time between two sweeps.
const DELAY_MIN_MS: u64 = 1000;

/// What one step may do: `loader_files` and `loader_threshold`, or those of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBudget {
    pub files: u64,
    pub threshold_ms: u64,
    /// The pause after a step that used its budget up.
    pub sleep_ms: u64,
}

/// The limits of a cache directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Entries that were not used for so long are removed.
    pub inactive_s: u64,
    pub size_max: u64,
    /// The space that stays free on the file system.
    pub free_min: u64,
}

/// Reads a directory into its index.
#[derive(Debug, Default)]
pub struct Loader {
    /// The directories that are being read, the innermost last.
    open: Vec<ReadDir>,
    has_begun: bool,
}

/// Keeps a directory within its limits.
#[derive(Debug, Default)]
pub struct CacheUpkeep {
    /// Where the sweep of unused entries is.
    shard: usize,
    at: usize,
}

impl FileFacts {
    pub fn of(metadata: &fs::Metadata) -> Self {
        // Some file systems reserve more than is written, and give it back later.
        let size = metadata.len().div_ceil(BLOCK_BYTES);
        let blocks = metadata.blocks();
        let is_reserved = blocks > size + 8 * metadata.blksize().max(BLOCK_BYTES) / BLOCK_BYTES;
        let blocks = if is_reserved { size } else { blocks };
        Self { inode: metadata.ino(), blocks }
    }
}

impl Loader {
    /// Reads more of the directory. Returns whether all of it was read.
    pub fn step(
        &mut self,
        zone: &CacheZone,
        budget: &StepBudget,
        now_s: i64,
        now_ms: impl Fn() -> u64,
    ) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.open.extend(fs::read_dir(&zone.folder().path));
        }
        let begun_ms = now_ms();
        let mut files = 0;
        while let Some(directory) = self.open.last_mut() {
            match directory.next() {
                None => _ = self.open.pop(),
                // A part that cannot be read is as good as empty: its files are found when used.
                Some(Err(_)) => {}
                Some(Ok(entry)) => {
                    self.take(zone, &entry, now_s);
                    files += 1;
                }
            }
            if files >= budget.files || now_ms() - begun_ms >= budget.threshold_ms {
                return false;
            }
        }
        zone.set_warm();
        true
    }

    fn take(&mut self, zone: &CacheZone, entry: &DirEntry, now_s: i64) {
        // Links are not followed.
        let Ok(metadata) = entry.metadata() else { return };
        let path = entry.path();
        if metadata.is_dir() {
            if self.open.len() <= LEVELS_MAX && !path.ends_with("temp") {
                self.open.extend(fs::read_dir(path));
            }
        } else if metadata.is_file() {
            take_file(zone, &path, &metadata, now_s);
        }
    }
}

/// Adds a file to the index, or removes it if it is of no use. Foreign files are left alone.
fn take_file(zone: &CacheZone, path: &Path, metadata: &fs::Metadata, now_s: i64) {
    zone.purges.note_file(metadata);
    let is_useful = match zone.folder().kind_of(path) {
        FileKind::Foreign => true,
        FileKind::Temporary => now_s.saturating_sub(metadata.mtime()) < ABANDONED_AFTER_S,
        FileKind::Stored(digest) => {
            metadata.len() >= FIXED_BYTES as u64
                && zone.load(&digest, FileFacts::of(metadata), now_s)
        }
    };
    if !is_useful {
        // Whoever removed it already has done the same.
        let _ = fs::remove_file(path);
    }
}

impl CacheUpkeep {
    /// Removes what was not used, and what is too much. Returns the time until the next step.
    /// `free` tells the free space of the file system, if it is known.
    pub fn step(
        &mut self,
        zone: &CacheZone,
        limits: &CacheLimits,
        budget: &StepBudget,
        now_s: i64,
        now_ms: impl Fn() -> u64,
        free: impl Fn() -> Option<u64>,
    ) -> u64 {
        let begun_ms = now_ms();
        let mut files = 0;
        let mut is_used_up = |removed: bool| {
            files += u64::from(removed);
            files >= budget.files || now_ms() - begun_ms >= budget.threshold_ms
        };
        let since_s = now_s.saturating_sub_unsigned(limits.inactive_s);
        while self.shard < zone.shards() {
            let (removed, next) = zone.remove_unused(self.shard, self.at, since_s, SWEEP_ENTRIES);
            match next {
                Some(next) => self.at = next,
                None => (self.shard, self.at) = (self.shard + 1, 0),
            }
            if is_used_up(removed) {
                return budget.sleep_ms;
            }
        }
        while limits.are_exceeded(zone, &free) && zone.evict() {
            if is_used_up(true) {
                return budget.sleep_ms;
            }
        }
        (self.shard, self.at) = (0, 0);
        (limits.inactive_s.saturating_mul(1000) / 2).clamp(DELAY_MIN_MS, DELAY_MAX_MS)
    }
}

impl CacheLimits {
    fn are_exceeded(&self, zone: &CacheZone, free: &impl Fn() -> Option<u64>) -> bool {
        // Without a limit, the size is never reached.
        zone.bytes() >= self.size_max
            || zone.is_above_watermark()
            || self.free_min > 0 && free().is_some_and(|free| free <= self.free_min)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::folder::{CacheFolder, DirectoryLevels};
    use crate::key::KeyDigest;
    use crate::zone::KeyState;

    const BUDGET: StepBudget = StepBudget { files: 2, threshold_ms: 100, sleep_ms: 50 };
    const LIMITS: CacheLimits = CacheLimits { inactive_s: 600, size_max: u64::MAX, free_min: 0 };

    fn zone(folder: &testing::Folder) -> CacheZone {
        let levels = DirectoryLevels::parse(b"1:2").unwrap();
        CacheZone::new(CacheFolder { path: (**folder).into(), levels }, 1 << 20)
    }

    fn key(number: u32) -> KeyDigest {
        KeyDigest::of(&number.to_le_bytes())
    }

    /// Writes a file where the zone has that of a key.
    fn write(zone: &CacheZone, number: u32) {
        let path = zone.folder().file(&key(number));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![0; 5000]).unwrap();
    }

    fn load(zone: &CacheZone, now_s: i64) -> usize {
        let mut loader = Loader::default();
        let steps = (1..1000).find(|_| loader.step(zone, &BUDGET, now_s, || 0));
        steps.unwrap()
    }

    #[test]
    fn a_directory_is_read_in_steps() {
        let folder = testing::Folder::new();
        let zone = zone(&folder);
        (0..10).for_each(|number| write(&zone, number));
        folder.write("notes.txt", b"mine");
        let short = zone.folder().file(&key(99));
        fs::create_dir_all(short.parent().unwrap()).unwrap();
        fs::write(&short, b"short").unwrap();
        assert!(load(&zone, 5) > 5);
        assert_eq!((zone.entries(), zone.bytes()), (10, 10 * 8192));
        assert_eq!(zone.find(&key(3), 1, 5), KeyState::Loaded);
        assert_eq!(zone.find(&key(11), 1, 5), KeyState::Missing);
        assert!(!short.exists() && folder.join("notes.txt").exists());
    }

    #[test]
    fn temporary_files_of_a_crash_are_removed() {
        let folder = testing::Folder::new();
        let zone = zone(&folder);
        let old = folder.write("0123456789abcdef0123456789abcdef.0000000001", b"old");
        let new = folder.write("0123456789abcdef0123456789abcdef.0000000002", b"new");
        let modified_s = fs::metadata(&new).unwrap().mtime();
        let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(&old).unwrap().set_modified(time).unwrap();
        load(&zone, modified_s);
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn a_directory_that_is_not_there_is_empty() {
        let folder = testing::Folder::new();
        let path = folder.join("none").into();
        let zone = CacheZone::new(CacheFolder { path, levels: Default::default() }, 1 << 20);
        assert_eq!(load(&zone, 5), 1);
        assert!(!zone.is_cold());
    }

    #[test]
    fn unused_files_are_removed_in_steps() {
        let folder = testing::Folder::new();
        let zone = zone(&folder);
        (0..5).for_each(|number| write(&zone, number));
        load(&zone, 5);
        zone.find(&key(2), 1, 100);
        let mut upkeep = CacheUpkeep::default();
        let step = |upkeep: &mut CacheUpkeep, now_s| {
            upkeep.step(&zone, &LIMITS, &BUDGET, now_s, || 0, || None)
        };
        assert_eq!(step(&mut upkeep, 604), DELAY_MAX_MS);
        assert_eq!(zone.entries(), 5);
        let left: Vec<_> = (0..3).map(|_| (step(&mut upkeep, 605), zone.entries())).collect();
        assert_eq!(left, [(50, 3), (50, 1), (DELAY_MAX_MS, 1)]);
        assert!(zone.folder().file(&key(2)).exists() && !zone.folder().file(&key(1)).exists());
    }

    #[test]
    fn what_is_too_much_is_removed() {
        let folder = testing::Folder::new();
        let zone = zone(&folder);
        (0..9).for_each(|number| write(&zone, number));
        load(&zone, 5);
        let mut upkeep = CacheUpkeep::default();
        let budget = StepBudget { files: 100, ..BUDGET };
        let by_size = CacheLimits { size_max: 4 * 8192, ..LIMITS };
        upkeep.step(&zone, &by_size, &budget, 6, || 0, || None);
        assert_eq!((zone.entries(), zone.bytes()), (3, 3 * 8192));
        let by_space = CacheLimits { free_min: 10, ..LIMITS };
        upkeep.step(&zone, &by_space, &budget, 6, || 0, || Some(11));
        assert_eq!(zone.entries(), 3);
        upkeep.step(&zone, &by_space, &budget, 6, || 0, || Some(10));
        assert_eq!(zone.entries(), 0);
    }
}
