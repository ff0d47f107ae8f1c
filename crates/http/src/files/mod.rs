//! Files that are served: what a path leads to, open files, and small hot contents in memory.
//!
//! Every worker has its own caches. Where `open_file_cache` is on, an entry is believed for as
//! long as `open_file_cache_valid` says, and the cache belongs to the configuration: a reload
//! begins with an empty one, as in nginx. Elsewhere only contents are kept, and every use costs
//! one stat: device, inode, size and both times must be what they were. What is kept is bounded by
//! number and by bytes.

mod cache;
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

pub(crate) use cache::{Look, Want};

use crate::exchange::{Body, Bytes, FileSlice};

/// Largest content kept in memory.
pub const CONTENT_SIZE_MAX: u64 = 256 * 1024;
/// The same where the kernel can send the file from its own cache, which is cheaper for what is
/// larger (docs/cost.md).
pub const COPIED_SIZE_MAX: u64 = 48 * 1024;
/// Contents one worker keeps.
pub const CONTENTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Entries one worker keeps where `open_file_cache` is off.
pub const ENTRIES_MAX: usize = 4096;
/// Uses that make a file hot: one that is asked for once does not push others out of memory.
pub const HOT_USES_MIN: u32 = 2;

/// How a location looks at files.
#[derive(Clone, Debug)]
pub struct Access {
    /// `open_file_cache` and its companions; `None`: every use asks the file system.
    pub cache: Option<CacheRules>,
    /// `disable_symlinks`
    pub links: Links,
    /// `from=`: what the trusted beginning of a path is.
    pub links_from: Option<conf::Template>,
    /// `directio`: files of at least this size are read past the kernel's cache, and ours.
    pub directio: u64,
}

/// `open_file_cache`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// Which of the configuration's caches.
    pub number: usize,
    /// Entries kept.
    pub max: usize,
    /// An entry not used for so long is dropped.
    pub inactive_ms: u64,
    /// How long an entry is believed.
    pub valid_ms: u64,
    /// Uses that it takes for a file to stay open.
    pub min_uses: u32,
    /// Whether failures are remembered, too.
    pub errors: bool,
}

/// What a path leads to.
#[derive(Clone)]
pub struct FoundFile {
    /// Its kind, size and time.
    pub stat: Stat,
    /// Where its content is.
    pub source: FileSource,
}

/// Where the content of a file is.
#[derive(Clone)]
pub enum FileSource {
    /// In none of the two places below: the file was only looked at, or has no content.
    Closed,
    /// In memory.
    Memory(Rc<[u8]>),
    /// Behind an open file.
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
