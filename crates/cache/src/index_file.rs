//! The index as a clean end leaves it in the directory, so that the next start knows at once what
//! is there, how large it is and how often it was used.
//!
//! ```text
//! .weir.running  this process keeps the directory: the end was not clean if it is found at a start
//! .weir.index    magic 8, count 8, written at 8, checksum 4, entry size 4;
//!                then entries: digest 16, blocks 4, used at 4, uses 4, queue 1, unused 3
//! ```
//!
//! Numbers are in the byte order of the machine. Its entries are hints: a file that is gone is
//! noticed at its first use, and a walk through the directory finds what the index does not have.
//! nginx removes both files when it reads the directory, so that an index never outlives a change
//! that it does not know. A process that finds another one's `.weir.running` writes no index.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::checksum::Checksum;
use crate::folder::CacheFolder;
use crate::index::SavedEntry;
use crate::key::KeyDigest;
use crate::zone::CacheZone;

const INDEX: &str = ".weir.index";
/// Its name ends as those of temporary files, which are removed when a crash has left them behind.
const INDEX_BEING_WRITTEN: &str = ".weir.index.0000000000";
const RUNNING: &str = ".weir.running";

const MAGIC: &[u8; 8] = b"weiridx1";
const HEAD_BYTES: usize = 32;
const ENTRY_BYTES: usize = 32;

/// The right of a process to write the index of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOwner(Box<[u8]>);

impl IndexOwner {
    /// A process that no other one has the name of: its number and when it has begun, for example.
    pub fn new(name: impl Into<Box<[u8]>>) -> Self {
        Self(name.into())
    }

    /// Takes the directory over, and reads the index of the process before, if that has ended
    /// cleanly. Returns whether there was one. An error is that of reading or of taking over.
    pub fn begin(&self, zone: &CacheZone, now_s: i64) -> io::Result<bool> {
        let [index, running] = [INDEX, RUNNING].map(|name| path(zone.folder(), name));
        let was_clean = !running.try_exists()?;
        // A directory that is not there yet is made by the first file.
        match fs::write(&running, &self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        }
        let bytes = match fs::read(&index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        // From now on it is outdated.
        fs::remove_file(&index)?;
        Ok(was_clean && load(zone, &bytes, now_s))
    }

    /// Writes the index, unless another process has taken the directory over. Returns whether it
    /// was written.
    pub fn end(&self, zone: &CacheZone, now_s: i64) -> io::Result<bool> {
        let [index, running] = [INDEX, RUNNING].map(|name| path(zone.folder(), name));
        // A directory that was not read yet has more than is known.
        if zone.is_cold() || fs::read(&running).ok().as_deref() != Some(&self.0) {
            return Ok(false);
        }
        let written = path(zone.folder(), INDEX_BEING_WRITTEN);
        let saved = save(zone, &written, now_s).and_then(|()| fs::rename(&written, &index));
        if let Err(error) = saved {
            let _ = fs::remove_file(&written);
            return Err(error);
        }
        fs::remove_file(running)?;
        Ok(true)
    }
}

fn path(folder: &CacheFolder, name: &str) -> PathBuf {
    folder.path.join(name)
}

fn save(zone: &CacheZone, path: &PathBuf, now_s: i64) -> io::Result<()> {
    // Written twice: the head is known at the end only.
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(&[0; HEAD_BYTES])?;
    let (mut count, mut checksum) = (0_u64, Checksum::default());
    for shard in 0..zone.shards() {
        for entry in zone.saved(shard) {
            let bytes = entry.to_bytes();
            checksum.add(&bytes);
            out.write_all(&bytes)?;
            count += 1;
        }
    }
    let file = out.into_inner()?;
    checksum.add(&now_s.to_ne_bytes());
    let head = head(count, now_s, checksum);
    std::os::unix::fs::FileExt::write_all_at(&file, &head, 0)
}

fn head(count: u64, now_s: i64, checksum: Checksum) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, MAGIC);
    put(8, &count.to_ne_bytes());
    put(16, &now_s.to_ne_bytes());
    put(24, &checksum.value().to_ne_bytes());
    put(28, &(ENTRY_BYTES as u32).to_ne_bytes());
    head
}

/// Returns whether the bytes are an index.
fn load(zone: &CacheZone, bytes: &[u8], now_s: i64) -> bool {
    let Some((written, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return false };
    let (entries, []) = rest.as_chunks::<ENTRY_BYTES>() else { return false };
    let mut checksum = Checksum::default();
    checksum.add(rest);
    checksum.add(&written[16..24]);
    let written_s = i64::from_ne_bytes(*written[16..].first_chunk().expect("the head is longer"));
    if *written != head(entries.len() as u64, written_s, checksum) {
        return false;
    }
    // The time in between does not count as time without use.
    let pause_s = u32::try_from(now_s.saturating_sub(written_s)).unwrap_or(0);
    for entry in entries {
        let saved = SavedEntry::from_bytes(entry);
        let used_s = saved.used_s.saturating_add(pause_s);
        zone.restore(&SavedEntry { used_s, ..saved });
    }
    zone.set_warm();
    zone.set_trusted();
    true
}

impl SavedEntry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let (digest, rest) = bytes.split_at_mut(16);
        digest.copy_from_slice(&self.digest.0);
        for (at, number) in [self.blocks, self.used_s, self.uses].into_iter().enumerate() {
            rest[4 * at..][..4].copy_from_slice(&number.to_ne_bytes());
        }
        rest[12] = self.queue;
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let number = |at: usize| {
            u32::from_ne_bytes(*bytes[at..].first_chunk().expect("positions are constants within"))
        };
        let mut digest = KeyDigest::default();
        digest.0.copy_from_slice(&bytes[..16]);
        let [blocks, used_s, uses] = [16, 20, 24].map(number);
        Self { digest, blocks, used_s, uses, queue: bytes[28] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::DirectoryLevels;
    use crate::zone::{FileFacts, KeyState};

    fn zone(folder: &testing::Folder) -> CacheZone {
        let levels = DirectoryLevels::default();
        let zone = CacheZone::new(CacheFolder { path: (**folder).into(), levels }, 1 << 20);
        zone.set_warm();
        zone
    }

    fn key(number: u32) -> KeyDigest {
        KeyDigest::of(&number.to_le_bytes())
    }

    /// A directory as a process leaves it that has stored ten files and uses one of them.
    fn left_by(owner: &IndexOwner) -> testing::Folder {
        let folder = testing::Folder::new();
        let zone = zone(&folder);
        assert!(!owner.begin(&zone, 100).unwrap());
        (0..10).for_each(|number| zone.store(&key(number), FileFacts { inode: 1, blocks: 8 }, 100));
        zone.remember_error(&key(99), 502, 0, 1000, 100);
        (0..3).for_each(|_| _ = zone.find(&key(3), 1, 150));
        assert!(owner.end(&zone, 200).unwrap());
        folder
    }

    fn owner(name: &str) -> IndexOwner {
        IndexOwner::new(name.as_bytes())
    }

    #[test]
    fn an_index_carries_over_what_is_there_and_how_it_was_used() {
        let folder = left_by(&owner("a"));
        assert_eq!(fs::metadata(folder.join(INDEX)).unwrap().len(), 32 + 10 * 32);
        let zone = CacheZone::new(zone(&folder).folder().clone(), 1 << 20);
        assert!(owner("b").begin(&zone, 1200).unwrap());
        assert_eq!((zone.entries(), zone.bytes(), zone.is_cold()), (10, 10 * 4096, false));
        assert!(zone.is_trusted());
        let saved: Vec<_> = (0..zone.shards()).flat_map(|shard| zone.saved(shard)).collect();
        let used = saved.iter().find(|entry| entry.digest == key(3)).unwrap();
        assert_eq!((used.used_s, used.uses, used.queue), (1150, 3, 3));
        assert!(saved.iter().filter(|entry| **entry != *used).all(|entry| entry.used_s == 1100));
        assert_eq!(zone.find(&key(4), 1, 1200), KeyState::Loaded);
        // It is used once.
        assert!(!folder.join(INDEX).exists());
    }

    #[test]
    fn the_order_of_the_queues_is_kept() {
        let folder = testing::Folder::new();
        let zone = zone(&folder);
        assert!(!owner("a").begin(&zone, 1).unwrap());
        for number in 0..1000 {
            zone.store(&key(number), FileFacts { inode: 1, blocks: 1 }, 1);
            (0..number % 3).for_each(|_| _ = zone.find(&key(number), 1, 1));
        }
        (0..300).for_each(|_| _ = zone.evict());
        owner("a").end(&zone, 1).unwrap();
        let again = CacheZone::new(zone.folder().clone(), 1 << 20);
        assert!(owner("b").begin(&again, 1).unwrap());
        for shard in 0..zone.shards() {
            assert_eq!(zone.saved(shard), again.saved(shard));
        }
        let order = |zone: &CacheZone| {
            let left =
                |_| zone.evict().then(|| (0..zone.shards()).map(|s| zone.saved(s)).collect());
            (0..).map_while(left).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(order(&zone), order(&again));
    }

    #[test]
    fn after_an_unclean_end_there_is_no_index() {
        let folder = left_by(&owner("a"));
        let index = fs::read(folder.join(INDEX)).unwrap();
        assert!(owner("b").begin(&zone(&folder), 200).unwrap());
        // Process b is killed, and an index of before is in the way.
        fs::write(folder.join(INDEX), index).unwrap();
        let after = zone(&folder);
        assert!(!owner("c").begin(&after, 200).unwrap());
        assert!(after.entries() == 0 && !after.is_trusted());
        assert!(!folder.join(INDEX).exists());
    }

    #[test]
    fn a_process_whose_directory_was_taken_over_writes_no_index() {
        let folder = left_by(&owner("a"));
        let (old, new) = (zone(&folder), zone(&folder));
        assert!(owner("b").begin(&old, 200).unwrap());
        assert!(!owner("c").begin(&new, 200).unwrap());
        assert!(!owner("b").end(&old, 300).unwrap());
        assert!(owner("c").end(&new, 300).unwrap());
    }

    #[test]
    fn a_broken_index_is_not_used() {
        let folder = left_by(&owner("a"));
        let index = fs::read(folder.join(INDEX)).unwrap();
        for at in 0..index.len() {
            let mut broken = index.clone();
            broken[at] ^= 1;
            assert!(!load(&zone(&folder), &broken, 200), "{at}");
        }
        for length in 0..index.len() {
            assert!(!load(&zone(&folder), &index[..length], 200), "{length}");
        }
        let lengths_that_lie = [&index[..], &index[32..]].concat();
        assert!(!load(&zone(&folder), &lengths_that_lie, 200));
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_index() {
        let folder = testing::Folder::new();
        let path = folder.join("none").into();
        let zone = CacheZone::new(CacheFolder { path, levels: Default::default() }, 1 << 20);
        assert!(!owner("a").begin(&zone, 1).unwrap());
        assert!(!owner("a").end(&zone, 1).unwrap());
    }
}
