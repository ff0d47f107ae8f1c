//! Files that are served: what a path leads to, open files, and small hot contents in memory.
//!
//! Every worker has its own cache. With `open_file_cache` an entry is believed for as long as
//! `open_file_cache_valid` says; without it every use costs one stat, and device, inode, size and
//! both times must be what they were. What is kept is bounded by number and by bytes.

mod cache;
mod lru;
mod temp;

use std::fs::File;
use std::io;
use std::rc::Rc;

pub(crate) use lru::Lru;
pub use net::file::{Links, Stat};
pub use temp::{Fate, TempFile, TempPath, TempPaths};

/// Largest content kept in memory. Measured: from memory in one write a 100 KB file costs about
/// two thirds of what sendfile costs, and the gap closes towards a megabyte.
pub const CONTENT_SIZE_MAX: u64 = 256 * 1024;
/// Contents one worker keeps.
pub const CONTENTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Entries one worker keeps where `open_file_cache` is off.
pub const ENTRIES_MAX: usize = 4096;

/// How a location looks at files.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// `open_file_cache` and its companions; `None`: every use asks the file system.
    pub cache: Option<CacheRules>,
    /// `disable_symlinks`
    pub links: Links,
    /// `from=`: the beginning of the path that is trusted, in bytes, is found by this template.
    pub links_from: Option<conf::Template>,
}

/// `open_file_cache`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// Entries kept.
    pub max: usize,
    /// An entry not used for so long is dropped.
    pub inactive_ms: u64,
    /// How long an entry is believed.
    pub valid_ms: u64,
    /// Uses within `inactive` for a file to stay open.
    pub min_uses: u32,
    /// Whether failures are remembered, too.
    pub errors: bool,
}

/// What a path leads to.
#[derive(Clone)]
pub struct Found {
    /// Its kind, size and time.
    pub stat: Stat,
    /// Its content, where it is in memory.
    pub content: Option<Rc<[u8]>>,
    /// The open file; `None` for a directory, or where the content is in memory.
    pub file: Option<Rc<File>>,
}

/// Why a path leads nowhere.
#[derive(Debug)]
pub struct Failed {
    /// The call: `open()` or `stat()`.
    pub call: &'static str,
    /// The reason.
    pub error: io::Error,
}

impl Failed {
    /// The status that nginx answers with.
    pub fn status(&self) -> u16 {
        use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};
        match self.error.kind() {
            NotFound | NotADirectory | InvalidFilename => 404,
            PermissionDenied => 403,
            _ if net::file::is_refused_link(&self.error) => 403,
            _ => 500,
        }
    }
}

/// Finds a file to be sent: its content in memory, or the file open.
pub fn open(path: &[u8], access: &Access, trusted: usize) -> Result<Found, Failed> {
    cache::open(path, access, trusted)
}

/// Finds out what a path leads to, without opening it.
pub fn test(path: &[u8], access: &Access, trusted: usize) -> Result<Stat, Failed> {
    if access.links != Links::Follow {
        return open(path, access, trusted).map(|found| found.stat);
    }
    cache::test(path, access)
}
