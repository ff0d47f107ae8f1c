//! Files that are served: what a path leads to, open files, and small hot contents in memory.
//!
//! Every worker has its own caches. Where `open_file_cache` is on, an entry is believed for as
//! long as `open_file_cache_valid` says, and the cache belongs to the configuration: a reload
//! begins with an empty one, as in nginx. Elsewhere only contents are kept, and every use costs
//! one stat: device, inode, size and both times must be what they were. What is kept is bounded by
//! number and by bytes.

mod cache;
mod listing;
mod temp;
#[cfg(test)]
mod tests;
mod threads;

use std::fs::File;
use std::io::Read as _;
use std::rc::Rc;

use net::clock;
use observe::{Errno, Level, Text};

pub use cache::Caches;
pub use listing::{list, without_slash};
pub use net::file::{Failed, Links, Stat};
pub use temp::{Fate, TempFile, TempPath, TempPaths};
pub use threads::{Reading, by_threads};

use crate::exchange::{Body, Bytes, Exchange, FileSlice};
use cache::{Look, Want};

/// Largest content kept in memory. A 10 KB file costs 0.84 of nginx's sendfile from there; at 100
/// KB the two are level on the machine this was measured on (docs/cost.md).
pub const CONTENT_SIZE_MAX: u64 = 256 * 1024;
/// Contents one worker keeps.
pub const CONTENTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Entries one worker keeps where `open_file_cache` is off.
pub const ENTRIES_MAX: usize = 4096;
/// Uses that make a file hot: one that is asked for once does not push others out of memory.
pub const HOT_USES_MIN: u32 = 2;

/// Linux's numbers for the reasons we give ourselves.
const EISDIR: i32 = 21;
const EFBIG: i32 = 27;

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
pub struct Found {
    /// Its kind, size and time.
    pub stat: Stat,
    /// Where its content is.
    pub source: Source,
}

/// Where the content of a file is.
#[derive(Clone)]
pub enum Source {
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

impl Found {
    /// The content of a regular file, as a body.
    pub fn into_body(self) -> Body {
        let size = self.stat.size;
        match self.source {
            _ if size == 0 => Body::Empty,
            Source::Memory(content) => Body::Bytes(Bytes::Kept(content, 0, size as u32)),
            Source::File(file) => Body::File(FileSlice { file, start: 0, end: size }),
            Source::Closed => unreachable!("a regular file that was opened is open or in memory"),
        }
    }
}

/// Finds a file to be sent: its content in memory, or the file open.
pub fn open(x: &mut Exchange, path: &[u8]) -> Result<Found, Failed> {
    look(x, path, Want::Content)
}

/// The content of a file that belongs to the configuration, whatever the location says of files
/// that it serves. One larger than `size_max` is refused.
pub fn read(x: &Exchange, path: &[u8], size_max: u64) -> Result<Rc<[u8]>, Failed> {
    let look = Look {
        path,
        want: Want::Content,
        links: Links::Follow,
        trusted: 0,
        rules: None,
        content_size_max: CONTENT_SIZE_MAX.min(size_max),
        now_ms: clock::now_ms(),
        unix_ms: clock::unix_ms(),
    };
    let found = look.find(&x.generation.files)?;
    const CALL: &str = "pread()";
    if found.stat.size > size_max {
        return Err(Failed::again(CALL, EFBIG));
    }
    match found.source {
        Source::Memory(content) => Ok(content),
        Source::File(file) => {
            let mut content = Vec::with_capacity(found.stat.size as usize);
            let read = (&*file).take(size_max).read_to_end(&mut content);
            read.map_err(|error| Failed { call: CALL, error })?;
            Ok(content.into())
        }
        Source::Closed => Err(Failed::again(CALL, EISDIR)),
    }
}

/// Finds out what a path leads to. Like nginx it opens the file if the result is to be cached.
pub fn test(x: &mut Exchange, path: &[u8]) -> Result<Stat, Failed> {
    look(x, path, Want::Stat).map(|found| found.stat)
}

/// The same where a directory is expected, which need not be readable.
pub fn test_directory(x: &mut Exchange, path: &[u8]) -> Result<Stat, Failed> {
    look(x, path, Want::Directory).map(|found| found.stat)
}

fn look(x: &mut Exchange, path: &[u8], want: Want) -> Result<Found, Failed> {
    let generation = x.generation.clone();
    let access = &generation.location(x.location).core.files;
    let (links, trusted) = match &access.links_from {
        None => (access.links, 0),
        Some(from) => trust(path, &x.render(from), access.links),
    };
    let look = Look {
        path,
        want,
        links,
        trusted,
        rules: access.cache,
        content_size_max: CONTENT_SIZE_MAX.min(access.directio.saturating_sub(1)),
        now_ms: clock::now_ms(),
        unix_ms: clock::unix_ms(),
    };
    look.find(&generation.files)
}

/// How many bytes at the beginning of the path are taken as they are: `from`, where it ends with a
/// part of the path. A path that is `from` is trusted altogether.
fn trust(path: &[u8], from: &[u8], links: Links) -> (Links, usize) {
    match path.strip_prefix(from) {
        Some(_) if from.is_empty() => (links, 0),
        Some([]) => (Links::Follow, 0),
        Some([b'/', ..]) => (links, from.len()),
        Some(_) if from.ends_with(b"/") => (links, from.len() - 1),
        _ => (links, 0),
    }
}

/// The status for a file that could not be had; in the error log in nginx's words.
pub fn refuse(x: &Exchange, path: &[u8], failed: &Failed) -> u16 {
    let (status, level) = verdict(failed);
    if status != 404 || x.location().core.log_not_found {
        log_failed(x, level, path, failed);
    }
    status
}

fn verdict(failed: &Failed) -> (u16, Level) {
    match failed {
        _ if failed.is_not_found() => (404, Level::Error),
        _ if failed.is_denied() || failed.is_refused_link() => (403, Level::Error),
        _ => (500, Level::Crit),
    }
}

/// `open() "/path" failed (2: No such file or directory)`
pub fn log_failed(x: &Exchange, level: Level, path: &[u8], failed: &Failed) {
    let Failed { call, error } = failed;
    x.log(level, format_args!("{call} \"{}\" failed{}", Text(path), Errno(error)));
}
