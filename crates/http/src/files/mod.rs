//! Files that are served: lookup of paths, open files, and contents of small, frequently used files
//! in memory.
//!
//! Every worker has its own caches. With `open_file_cache`, an entry is valid for
//! `open_file_cache_valid`, and the cache belongs to the configuration: as in nginx, a reload
//! begins with an empty one. Without it, only contents are kept, and every use costs one stat:
//! device, inode, size and both times must be unchanged. Caches are limited in entries and bytes.

mod cache;
mod counts;
mod temp;
#[cfg(test)]
mod tests;
mod threads;

use std::fs::File;
use std::rc::Rc;

pub use cache::Caches;
pub use net::file::{Links, PathError, Stat};
pub use temp::{TempFile, TempFileEnd, TempFolder, TempPath, TempPaths};
pub use threads::{ReadByThreads, ReadMode};

pub(crate) use cache::{FileLookup, Want};
pub(crate) use counts::show as show_caches;

use crate::exchange::{Body, Bytes, FileSlice};

/// The largest content to keep in memory.
pub const CONTENT_SIZE_MAX: u64 = 256 * 1024;
/// The same if the kernel can send the file from its own cache, which is cheaper for larger files
/// (docs/cost.md).
pub const COPIED_SIZE_MAX: u64 = 48 * 1024;
/// The most bytes of contents that a worker keeps.
pub const CONTENTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most entries that a worker keeps without `open_file_cache`.
pub const ENTRIES_MAX: usize = 4096;
/// The uses from which a file's content is kept, so that a file that is used once does not displace
/// others.
pub const HOT_USES_MIN: u32 = 2;

/// How a location looks files up.
#[derive(Clone, Debug)]
pub struct Access {
    /// `open_file_cache` and its companions. `None`: every use looks the file up.
    pub cache: Option<CacheRules>,
    /// `disable_symlinks`
    pub links: Links,
    /// `from=` of `disable_symlinks`: the beginning of a path that is not checked.
    pub links_from: Option<conf::Template>,
    /// `directio`: files of at least this size bypass the caches of the kernel and of the worker.
    pub directio: u64,
}

/// `open_file_cache`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// The number of the cache in the configuration.
    pub number: usize,
    /// The most entries.
    pub max: usize,
    /// Entries that were not used for this time are dropped.
    pub inactive_ms: u64,
    /// How long an entry is valid.
    pub valid_ms: u64,
    /// The uses from which a file is kept open.
    pub min_uses: u32,
    /// Whether failures are kept.
    pub errors: bool,
}

#[derive(Clone)]
pub struct FoundFile {
    /// Its kind, size and time.
    pub stat: Stat,
    pub source: FileSource,
}

/// The source of a file's content.
#[derive(Clone)]
pub enum FileSource {
    /// None: only the status was wanted, or the file has no content.
    Closed,
    Memory(Rc<[u8]>),
    File(Rc<File>),
}

impl Default for Access {
    fn default() -> Self {
        Self { cache: None, links: Links::Follow, links_from: None, directio: u64::MAX }
    }
}

impl FoundFile {
    /// The content of a regular file, as a body.
    pub fn into_body(self) -> Body {
        let size = self.stat.size;
        match self.source {
            _ if size == 0 => Body::Empty,
            FileSource::Memory(content) => Body::Bytes(Bytes::Kept(content, 0, size as u32)),
            FileSource::File(file) => Body::File(FileSlice { file, start: 0, end: size }),
            FileSource::Closed => {
                unreachable!("a regular file that was opened is open or in memory")
            }
        }
    }
}
