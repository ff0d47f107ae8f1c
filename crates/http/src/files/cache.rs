//! One worker's open files and contents.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use net::clock;
use net::file::{self, Links, Stat};

use super::lru::Lru;
use super::{Access, CONTENT_SIZE_MAX, CONTENTS_BYTES_MAX, CacheRules, ENTRIES_MAX, Failed, Found};

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache { entries: Lru::new(), content_bytes: 0 });
}

struct Cache {
    entries: Lru<Entry>,
    content_bytes: usize,
}

/// What is known of a path.
struct Entry {
    known: Known,
    /// How it was looked at: another location may look at the same path differently.
    links: Links,
    checked_ms: u64,
    used_ms: u64,
    uses: u32,
}

enum Known {
    Found(Found),
    /// The call and the errno of a failure that is remembered.
    Failed(&'static str, i32),
}

pub(super) fn open(path: &[u8], access: &Access, trusted: usize) -> Result<Found, Failed> {
    CACHE.with_borrow_mut(|cache| {
        if let Some(known) = cache.believed(path, access) {
            return known;
        }
        if let Some(found) = cache.unchanged(path, access) {
            return Ok(found);
        }
        let uses = cache.forget(path) + 1;
        let found = read(path, access, trusted);
        cache.keep(path, access, &found, uses);
        found
    })
}

pub(super) fn test(path: &[u8], access: &Access) -> Result<Stat, Failed> {
    if access.cache.is_some() {
        return open(path, access, 0).map(|found| found.stat);
    }
    file::stat(path).map_err(|error| Failed { call: "stat()", error })
}

impl Cache {
    /// What `open_file_cache` lets us say without asking.
    fn believed(&mut self, path: &[u8], access: &Access) -> Option<Result<Found, Failed>> {
        let rules = access.cache?;
        let now_ms = clock::now_ms();
        let entry = self.entries.touch(path)?;
        if entry.links != access.links || now_ms - entry.checked_ms > rules.valid_ms {
            return None;
        }
        entry.used(now_ms, rules.inactive_ms);
        match &entry.known {
            Known::Found(found) if found.is_incomplete() => None,
            Known::Found(found) => Some(Ok(found.clone())),
            Known::Failed(call, errno) if rules.errors => {
                Some(Err(Failed { call, error: io::Error::from_raw_os_error(*errno) }))
            }
            Known::Failed(..) => None,
        }
    }

    /// What one stat shows to be as it was. Guarded paths are walked anew each time.
    fn unchanged(&mut self, path: &[u8], access: &Access) -> Option<Found> {
        if access.links != Links::Follow {
            return None;
        }
        let entry = self.entries.touch(path)?;
        let Known::Found(found) = &entry.known else { return None };
        if entry.links != Links::Follow
            || found.is_incomplete()
            || file::stat(path).ok()? != found.stat
        {
            return None;
        }
        let found = found.clone();
        entry.checked_ms = clock::now_ms();
        entry.used(entry.checked_ms, access.cache.map_or(0, |rules| rules.inactive_ms));
        Some(found)
    }

    fn keep(&mut self, path: &[u8], access: &Access, result: &Result<Found, Failed>, uses: u32) {
        let known = match (result, access.cache) {
            (Ok(found), Some(rules)) => {
                let file = found.file.clone().filter(|_| uses >= rules.min_uses);
                Known::Found(Found { file, ..found.clone() })
            }
            // Without `open_file_cache` no file stays open, but contents do.
            (Ok(found), None) if found.content.is_some() => Known::Found(found.clone()),
            (Err(failed), Some(rules)) if rules.errors => {
                Known::Failed(failed.call, failed.error.raw_os_error().unwrap_or(0))
            }
            _ => return,
        };
        let now_ms = clock::now_ms();
        self.content_bytes += known.content_bytes();
        let links = access.links;
        let entry = Entry { known, links, checked_ms: now_ms, used_ms: now_ms, uses };
        self.entries.insert(path, entry);
        self.make_room(access.cache.as_ref(), now_ms);
    }

    fn make_room(&mut self, rules: Option<&CacheRules>, now_ms: u64) {
        let most = rules.map_or(ENTRIES_MAX, |rules| rules.max.max(1));
        let inactive_ms = rules.map_or(u64::MAX, |rules| rules.inactive_ms);
        while let Some((_, oldest)) = self.entries.oldest() {
            let stale = now_ms - oldest.used_ms > inactive_ms;
            if !stale && self.entries.len() <= most && self.content_bytes <= CONTENTS_BYTES_MAX {
                return;
            }
            let gone = self.entries.pop_oldest().expect("there is an oldest");
            self.content_bytes -= gone.known.content_bytes();
        }
    }

    /// Drops what is known of a path; how often it was used.
    fn forget(&mut self, path: &[u8]) -> u32 {
        let Some(gone) = self.entries.remove(path) else { return 0 };
        self.content_bytes -= gone.known.content_bytes();
        gone.uses
    }
}

impl Entry {
    fn used(&mut self, now_ms: u64, inactive_ms: u64) {
        self.uses = if now_ms - self.used_ms > inactive_ms { 1 } else { self.uses + 1 };
        self.used_ms = now_ms;
    }
}

impl Found {
    /// Whether a file must be opened, or could by now be had from memory.
    fn is_incomplete(&self) -> bool {
        if !self.stat.is_regular() || self.content.is_some() {
            return false;
        }
        self.file.is_none() || may_be_kept(&self.stat)
    }
}

impl Known {
    fn content_bytes(&self) -> usize {
        match self {
            Self::Found(found) => found.content.as_ref().map_or(0, |content| content.len()),
            Self::Failed(..) => 0,
        }
    }
}

/// Asks the file system.
fn read(path: &[u8], access: &Access, trusted: usize) -> Result<Found, Failed> {
    let opened = match access.links {
        Links::Follow => file::open(path),
        links => file::open_checked(path, trusted, links),
    };
    let failed = |call| move |error| Failed { call, error };
    let file = opened.map_err(failed("open()"))?;
    let stat = file::stat_open(&file).map_err(failed("fstat()"))?;
    if !stat.is_regular() {
        return Ok(Found { stat, content: None, file: None });
    }
    match content(&file, &stat).map_err(failed("read()"))? {
        Some(content) => Ok(Found { stat, content: Some(content), file: None }),
        None => Ok(Found { stat, content: None, file: Some(Rc::new(file)) }),
    }
}

/// Small, and left alone for long enough that a change would show.
fn may_be_kept(stat: &Stat) -> bool {
    stat.size <= CONTENT_SIZE_MAX && stat.is_settled(clock::unix_ms())
}

fn content(mut file: &File, stat: &Stat) -> io::Result<Option<Rc<[u8]>>> {
    if !may_be_kept(stat) {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(stat.size as usize + 1);
    file.by_ref().take(stat.size + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == stat.size).then(|| bytes.into()))
}
