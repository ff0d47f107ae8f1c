//! The open files and file contents of one worker.
//!
//! A cached entry is used if it is still valid (`open_file_cache_valid`), or if one stat shows that
//! the file has not changed. Otherwise the file is looked up again. There is no clock here: a
//! lookup contains its time.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use net::file::{self, Links, PathError, Stat};

use super::counts::{CacheKind, HeldEntry};
use super::{CONTENTS_BYTES_MAX, CacheRules, ENTRIES_MAX, FileSource, FoundFile, HOT_USES_MIN};
use crate::lru::Lru;

thread_local! {
    /// File contents for locations without `open_file_cache`; they outlive a reload.
    static CONTENTS: RefCell<FileCache> = RefCell::new(FileCache::new(CacheKind::Contents));
}

/// The caches of one configuration in one worker, one for each `open_file_cache`.
#[derive(Default)]
pub struct Caches(RefCell<Vec<FileCache>>);

impl Caches {
    fn with<T>(&self, rules: &CacheRules, find: impl FnOnce(&mut FileCache) -> T) -> T {
        let mut caches = self.0.borrow_mut();
        if caches.len() <= rules.number {
            caches.resize_with(rules.number + 1, || FileCache::new(CacheKind::OpenFiles));
        }
        find(&mut caches[rules.number])
    }
}

pub(crate) struct FileLookup<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) want: Want,
    pub(crate) links: Links,
    /// How many bytes at the beginning of the path may contain links regardless of `links`.
    pub(crate) trusted: usize,
    pub(crate) rules: Option<CacheRules>,
    /// The largest content to keep.
    pub(crate) content_size_max: u64,
    /// The time of the lookup, by the worker's clock.
    pub(crate) now_ms: u64,
    /// The time of the lookup since 1970.
    pub(crate) unix_ms: u64,
}

/// The wanted result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// The content, or the open file.
    Content,
    Stat,
    /// The status of a path that is expected to be a directory.
    Directory,
}

impl FileLookup<'_> {
    /// Finds the file. `caches` is called only if `open_file_cache` is on.
    pub(crate) fn find<'a>(
        &self,
        caches: impl FnOnce() -> &'a Caches,
    ) -> Result<FoundFile, PathError> {
        match &self.rules {
            Some(rules) => caches().with(rules, |cache| cache.find(self)),
            None if self.want == Want::Content => {
                CONTENTS.with_borrow_mut(|cache| cache.find(self))
            }
            None => Ok(FoundFile { stat: self.stat()?, source: FileSource::Closed }),
        }
    }

    fn stat(&self) -> Result<Stat, PathError> {
        match self.links {
            Links::Follow => file::stat(self.path),
            links => file::stat_open(&file::open_checked(self.path, self.trusted, links)?),
        }
    }

    fn open_file(&self) -> Result<File, PathError> {
        match self.links {
            Links::Follow => file::open(self.path),
            links => file::open_checked(self.path, self.trusted, links),
        }
    }

    /// Looks the file up in the file system. `known` is the earlier result, whose content is reused
    /// if the file has not changed.
    fn open(&self, uses: u32, known: Option<&FoundFile>) -> Result<FoundFile, PathError> {
        if self.want == Want::Directory || known.is_some_and(|known| known.stat.is_directory()) {
            let stat = self.stat()?;
            if stat.is_directory() {
                return Ok(FoundFile { stat, source: FileSource::Closed });
            }
        }
        let file = self.open_file()?;
        let stat = file::stat_open(&file)?;
        if stat.is_directory() {
            return Ok(FoundFile { stat, source: FileSource::Closed });
        }
        if let Some(FoundFile { stat: before, source: source @ FileSource::Memory(_) }) = known
            && *before == stat
        {
            return Ok(FoundFile { stat, source: source.clone() });
        }
        let source = match self.content(&file, &stat, uses) {
            Some(content) => FileSource::Memory(content),
            None => FileSource::File(Rc::new(file)),
        };
        Ok(FoundFile { stat, source })
    }

    /// The file's content, if it is to be kept in memory.
    fn content(&self, file: &File, stat: &Stat, uses: u32) -> Option<Rc<[u8]>> {
        if uses < self.hot_uses() || !self.may_be_kept(stat) {
            return None;
        }
        // If reading fails, sending the file fails as well and logs the error.
        read(file, stat.size).ok().flatten()
    }

    fn hot_uses(&self) -> u32 {
        self.rules.map_or(HOT_USES_MIN, |rules| rules.min_uses.max(HOT_USES_MIN))
    }

    /// Whether a file is small, and unchanged for so long that a later change would show in its
    /// times.
    fn may_be_kept(&self, stat: &Stat) -> bool {
        self.is_small(stat) && stat.is_settled(self.unix_ms)
    }

    fn is_small(&self, stat: &Stat) -> bool {
        stat.is_regular() && stat.size <= self.content_size_max
    }
}

/// Reads a file of exactly `size` bytes. `None` if its size is different, because it is being
/// changed.
pub(super) fn read(mut file: &File, size: u64) -> io::Result<Option<Rc<[u8]>>> {
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.by_ref().take(size + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == size).then(|| bytes.into()))
}

struct FileCache {
    kind: CacheKind,
    entries: Lru<FileEntry>,
}

/// The cached result for a path, and how it was looked up.
struct FileEntry {
    known: KnownFile,
    _held: HeldEntry,
    links: Links,
    trusted: usize,
    checked_ms: u64,
    used_ms: u64,
    uses: u32,
}

enum KnownFile {
    Found(FoundFile),
    /// The system call and the errno of a cached failure.
    Failed(&'static str, i32),
}

impl FileCache {
    fn new(kind: CacheKind) -> Self {
        Self { kind, entries: Lru::new() }
    }

    fn find(&mut self, look: &FileLookup<'_>) -> Result<FoundFile, PathError> {
        if let Some(rules) = &look.rules {
            self.drop_inactive(rules.inactive_ms, look.now_ms);
        }
        let (mut uses, mut known) = (1, None);
        if let Some(entry) = self.entries.get(look.path) {
            entry.uses = entry.uses.saturating_add(1);
            entry.used_ms = look.now_ms;
            if let Some(answer) = entry.answer(look) {
                self.kind.count_lookup(true);
                return answer;
            }
            uses = entry.uses;
            known = entry.found();
        }
        let result = look.open(uses, known);
        self.record(look, uses, &result);
        self.kind.count_lookup(false);
        result
    }

    fn record(&mut self, look: &FileLookup<'_>, uses: u32, result: &Result<FoundFile, PathError>) {
        let Some(known) = cacheable(look, uses, result) else {
            if let Some(entry) = self.entries.find(look.path) {
                self.entries.remove(entry);
            }
            return;
        };
        let _held = HeldEntry::new(self.kind, known.content_bytes());
        let FileLookup { links, trusted, now_ms, .. } = *look;
        let entry =
            FileEntry { known, _held, links, trusted, checked_ms: now_ms, used_ms: now_ms, uses };
        self.entries.insert(look.path, entry);
        self.keep_limits(look.rules.map_or(ENTRIES_MAX, |rules| rules.max));
    }

    fn keep_limits(&mut self, entries_max: usize) {
        while self.entries.len() > entries_max {
            self.entries.remove_oldest();
        }
        // Only this cache's entries can be dropped here, so it may end up without contents while
        // other caches hold too many.
        while HeldEntry::bytes_in_all() > CONTENTS_BYTES_MAX && self.entries.remove_oldest() {}
    }

    /// Drops up to two entries that were not used for `inactive_ms`.
    fn drop_inactive(&mut self, inactive_ms: u64, now_ms: u64) {
        for _ in 0..2 {
            let Some(oldest) = self.entries.oldest() else { return };
            if now_ms.saturating_sub(self.entries.value(oldest).used_ms) <= inactive_ms {
                return;
            }
            self.entries.remove(oldest);
        }
    }
}

impl Drop for FileCache {
    fn drop(&mut self) {
        self.entries = Lru::new();
        self.kind.count_drop();
    }
}

/// The part of a result to keep.
fn cacheable(
    look: &FileLookup<'_>,
    uses: u32,
    result: &Result<FoundFile, PathError>,
) -> Option<KnownFile> {
    match (result, &look.rules) {
        (Ok(found), Some(rules)) => {
            let source = match &found.source {
                FileSource::File(_) if uses < rules.min_uses => FileSource::Closed,
                source => source.clone(),
            };
            Some(KnownFile::Found(FoundFile { stat: found.stat, source }))
        }
        // Files are not kept open. Contents are kept, and so are the uses of files whose content
        // may be kept later.
        (Ok(found), None) => match &found.source {
            FileSource::Memory(_) => Some(KnownFile::Found(found.clone())),
            FileSource::File(_) if look.is_small(&found.stat) => {
                Some(KnownFile::Found(FoundFile { stat: found.stat, source: FileSource::Closed }))
            }
            _ => None,
        },
        (Err(failed), Some(rules)) if rules.errors => {
            let errno = failed.error.raw_os_error()?;
            Some(KnownFile::Failed(failed.call, errno))
        }
        (Err(_), _) => None,
    }
}

impl FileEntry {
    /// The result, if the entry can be used without opening the file.
    fn answer(&mut self, look: &FileLookup<'_>) -> Option<Result<FoundFile, PathError>> {
        let KnownFile::Found(found) = &self.known else {
            let KnownFile::Failed(call, errno) = self.known else { unreachable!("not found") };
            return self.is_valid(look).then(|| Err(PathError::again(call, errno)));
        };
        let complete = match &found.source {
            FileSource::Memory(_) => true,
            FileSource::File(_) => self.uses < look.hot_uses() || !look.may_be_kept(&found.stat),
            FileSource::Closed => found.stat.is_directory(),
        };
        if !complete {
            return None;
        }
        let found = found.clone();
        if !self.is_valid(look) {
            // A path with `disable_symlinks` is checked each time.
            if look.links != Links::Follow || file::stat(look.path).ok()? != found.stat {
                return None;
            }
            (self.links, self.trusted, self.checked_ms) = (look.links, look.trusted, look.now_ms);
        }
        Some(Ok(found))
    }

    fn is_valid(&self, look: &FileLookup<'_>) -> bool {
        let Some(rules) = &look.rules else { return false };
        look.now_ms.saturating_sub(self.checked_ms) < rules.valid_ms
            && self.links == look.links
            && self.trusted == look.trusted
    }

    fn found(&self) -> Option<&FoundFile> {
        match &self.known {
            KnownFile::Found(found) => Some(found),
            KnownFile::Failed(..) => None,
        }
    }
}

impl KnownFile {
    fn content_bytes(&self) -> usize {
        match self {
            Self::Found(FoundFile { source: FileSource::Memory(content), .. }) => content.len(),
            _ => 0,
        }
    }
}
