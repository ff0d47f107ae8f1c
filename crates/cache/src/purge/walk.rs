//! A walk through a cache directory that removes purged files, in steps with a budget.
//!
//! It looks at files, not at the index: those of another process, which this one does not know, are
//! found as well. Once it is over, the rules that were there when it began have no effect any more.

use std::fs::{self, DirEntry, File, ReadDir};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::PurgeSubject;
use crate::file_head::FIXED_BYTES;
use crate::file_time::modified_ns;
use crate::folder::{FileKind, LEVELS_MAX};
use crate::key::KeyDigest;
use crate::upkeep::StepBudget;
use crate::zone::CacheZone;

/// Bytes of a file that are read at once: enough for most heads.
const READ_BYTES: usize = 4096;

/// Reads the tags in the stored head of a reply: values of fields, with line feeds between them.
pub type TagsOf<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

#[derive(Debug)]
pub struct PurgeWalk {
    /// The newest rule when it began.
    until_ns: u64,
    /// The directories that are being read, the innermost last.
    open: Vec<ReadDir>,
    /// Whether all so far could be read.
    is_complete: bool,
}

impl PurgeWalk {
    pub fn begin(zone: &CacheZone) -> Self {
        let until_ns = zone.newest_purge_ns();
        let opened = fs::read_dir(&zone.folder().path);
        let is_complete = opened.as_ref().err().is_none_or(is_harmless);
        Self { until_ns, open: opened.into_iter().collect(), is_complete }
    }

    /// Walks on. Returns whether it is over.
    pub fn step(
        &mut self,
        zone: &CacheZone,
        budget: &StepBudget,
        tags_of: TagsOf<'_>,
        now_ms: impl Fn() -> u64,
    ) -> bool {
        let begun_ms = now_ms();
        let mut files = 0;
        while let Some(directory) = self.open.last_mut() {
            match directory.next() {
                None => _ = self.open.pop(),
                Some(Err(_)) => self.is_complete = false,
                Some(Ok(entry)) => match self.take(zone, &entry, tags_of) {
                    Ok(was_read) => files += u64::from(was_read),
                    // A file that this user may not read is never served.
                    Err(error) => self.is_complete &= is_harmless(&error),
                },
            }
            if files >= budget.files || now_ms() - begun_ms >= budget.threshold_ms {
                return false;
            }
        }
        if self.is_complete {
            zone.walked(self.until_ns);
        }
        true
    }

    /// Looks at a file, and removes it if it is purged. Returns whether it was read.
    fn take(
        &mut self,
        zone: &CacheZone,
        entry: &DirEntry,
        tags_of: TagsOf<'_>,
    ) -> io::Result<bool> {
        // Links are not followed.
        let metadata = entry.metadata()?;
        let path = entry.path();
        if metadata.is_dir() {
            if self.open.len() <= LEVELS_MAX && !path.ends_with("temp") {
                self.open.push(fs::read_dir(path)?);
            }
            return Ok(false);
        }
        let FileKind::Stored(digest) = zone.folder().kind_of(&path) else { return Ok(false) };
        let modified_ns = modified_ns(&metadata);
        if !metadata.is_file() || modified_ns > self.until_ns {
            return Ok(false);
        }
        let head = read_head(&path)?;
        if let Some((key, head)) = key_and_head(&head) {
            let tags = match zone.has_purged_tags_since(modified_ns) {
                true => tags_of(head),
                false => Vec::new(),
            };
            let subject = PurgeSubject { key, digest: KeyDigest::of(key), tags: &tags };
            if zone.is_purged(&subject, modified_ns) {
                zone.remove(&digest);
            }
        }
        Ok(true)
    }
}

fn is_harmless(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Reads a file up to its body.
fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = vec![0; READ_BYTES];
    let length = file.read_at(&mut bytes, 0)?;
    bytes.truncate(length);
    let body_start = usize::from(number_at(&bytes, 56).unwrap_or(0));
    if body_start > length && length == READ_BYTES {
        bytes.resize(body_start, 0);
        match file.read_exact_at(&mut bytes[length..], length as u64) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => bytes.truncate(length),
            read => read?,
        }
    }
    Ok(bytes)
}

/// The key in the beginning of a file, and the stored head; `None`: the file cannot be used.
fn key_and_head(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head_start, body_start) = (number_at(bytes, 54)?, number_at(bytes, 56)?);
    let line = bytes.get(FIXED_BYTES..usize::from(head_start))?;
    let key = line.strip_prefix(b"\nKEY: ")?.strip_suffix(b"\n")?;
    Some((key, bytes.get(usize::from(head_start)..usize::from(body_start))?))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
