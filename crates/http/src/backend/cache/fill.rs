//! A reply on its way into the cache: a temporary file beside the client, moved to its place when
//! it is complete.
//!
//! The head of the file is written with the checksum of all that follows it, so it comes last: a
//! small reply is one write, a large one has its checksum put in afterwards.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use cache::checksum::Checksum;
use cache::file_head::CHECKSUM_AT;
use cache::{CacheKey, FileFacts, FileHead, Fill, Freshness, KeyDigest, PurgeSubject};
use observe::{Errno, Level, Text};
use wire::date;
use wire::reply::ReplyName;

use super::super::call::Answered;
use super::super::fetch::{ReplySink, SinkFailed};
use super::attempt::{CacheAttempt, now_s};
use super::path::CacheStore;
use crate::exchange::{Chunk, DetachedLog, Exchange, FileSlice};
use crate::files::{TempFile, TempFileEnd, TempPath};

/// The bytes that wait for a write.
const PENDING_MAX: usize = 64 * 1024;
/// The permissions of cache files, as in nginx.
const MODE: u32 = 0o600;

/// How long a reply that could not be stored is remembered as such.
const UNCACHEABLE_S: i64 = 5;

/// A reply being stored.
pub(crate) struct CacheFill {
    store: Arc<CacheStore>,
    digest: KeyDigest,
    key: CacheKey,
    /// Values of fields with tags.
    tags: Vec<u8>,
    /// The newest purge when the request began.
    begun_ns: u64,
    /// What others wait for; given back when the file is in its place.
    _fill: Option<Fill>,
    file: TempFile,
    place: PathBuf,
    /// Bytes that are not written yet.
    pending: Vec<u8>,
    /// Whether all bytes so far are in `pending`.
    is_unwritten: bool,
    checksum: Checksum,
    log: Rc<DetachedLog>,
}

impl CacheAttempt {
    /// Begins to store the reply whose head was read. `None`: it is not stored.
    pub(in super::super) fn begin_store(
        mut self,
        x: &mut Exchange,
        answered: &Answered,
        temp_path: &TempPath,
    ) -> Option<Box<CacheFill>> {
        let now_s = now_s();
        let valid_s = match self.freshness.valid_s {
            0 => self.valid_until(x.backends.head.status, now_s),
            valid_s => Some(valid_s),
        };
        let Some(valid_s) = valid_s.filter(|_| self.may_store()) else {
            // The next one is no different, so that nobody waits for it.
            if self.fill.is_some() && self.is_cacheable {
                let until_s = now_s + UNCACHEABLE_S;
                self.store.zone.remember_uncacheable(&self.digest, until_s, now_s);
            }
            return None;
        };
        if self.cache.conf.no_cache.as_ref().is_some_and(|no_cache| no_cache.any(x)) {
            return None;
        }
        self.freshness.valid_s = valid_s;
        CacheFill::begin(self, x, &answered.input[..answered.head_bytes], temp_path)
    }
}

impl CacheFill {
    /// Begins a file with the head of the reply, `text`. `None`: the reply is not stored.
    pub(super) fn begin(
        attempt: CacheAttempt,
        x: &mut Exchange,
        text: &[u8],
        temp_path: &TempPath,
    ) -> Option<Box<Self>> {
        let (digest, variant) = attempt.place(x);
        let CacheAttempt { cache, store, key, fill, freshness, begun_ns, .. } = attempt;
        let tags = store.tags.values_of(&x.backends.head, &x.backends.head_text);
        let mut head = Vec::with_capacity(text.len());
        cache.terms.form.write(text, &mut head);
        let mut pending = begun(x, &key, &freshness, variant, head.len())?;
        let mut checksum = Checksum::default();
        let contents = pending.len();
        key.write_line(&mut pending);
        pending.extend_from_slice(&head);
        checksum.add(&pending[contents..]);
        let place = store.zone.folder().file(&digest);
        let file = match store.use_temp_path {
            true => temp_path.create(TempFileEnd::Deleted),
            false => TempFile::beside(&place),
        };
        let log = x.aside();
        match file {
            Ok(file) => Some(Box::new(Self {
                store,
                digest,
                key,
                tags,
                begun_ns,
                _fill: fill,
                file,
                place,
                pending,
                is_unwritten: true,
                checksum,
                log,
            })),
            Err((path, error)) => {
                let (path, errno) = (path.display(), Errno(&error));
                x.log(Level::Crit, format_args!("open() \"{path}\" failed{errno}"));
                None
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.add(bytes);
        if self.pending.len() + bytes.len() <= PENDING_MAX {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        match bytes.len() < PENDING_MAX {
            true => self.pending.extend_from_slice(bytes),
            false => self.file.append(bytes)?,
        }
        Ok(())
    }

    fn add_file(&mut self, slice: &FileSlice) -> io::Result<()> {
        let mut buffer = vec![0; slice.len().min(PENDING_MAX as u64) as usize];
        let mut start = slice.start;
        while start < slice.end {
            let count = (slice.end - start).min(buffer.len() as u64) as usize;
            slice.file.read_exact_at(&mut buffer[..count], start)?;
            self.add(&buffer[..count])?;
            start += count as u64;
            net::spend(count);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.is_unwritten = false;
        self.file.append(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Writes the rest, and the checksum.
    fn complete(&mut self) -> io::Result<(FileFacts, u64)> {
        let checksum = self.checksum.value().to_ne_bytes();
        if self.is_unwritten {
            let at = CHECKSUM_AT as usize;
            self.pending[at..at + checksum.len()].copy_from_slice(&checksum);
            self.flush()?;
        } else {
            self.flush()?;
            self.file.write_at(&checksum, CHECKSUM_AT)?;
        }
        self.file.facts()
    }

    /// Whether it may be kept, with a time at which no purge so far concerns it.
    fn is_admitted(&self, modified_ns: u64) -> bool {
        let subject = PurgeSubject::new(&self.key, &self.tags);
        let admitted = self.store.zone.admit(&subject, self.begun_ns, modified_ns);
        let Some(earliest_ns) = admitted else {
            let key = Text(self.key.text());
            self.log.write(Level::Info, format_args!("\"{key}\" was purged while it was fetched"));
            return false;
        };
        if modified_ns >= earliest_ns {
            return true;
        }
        let set = self.file.set_modified(earliest_ns);
        set.inspect_err(|error| self.log_failure("utimes()", error)).is_ok()
    }

    fn log_failure(&self, call: &str, error: &io::Error) {
        let (path, errno) = (self.file.path().display(), Errno(error));
        self.log.write(Level::Crit, format_args!("{call} \"{path}\" failed{errno}"));
    }
}

/// The fixed part of a file whose head has `head_bytes`; `None`: the head is too long.
fn begun(
    x: &Exchange,
    key: &CacheKey,
    freshness: &Freshness,
    variant: KeyDigest,
    head_bytes: usize,
) -> Option<Vec<u8>> {
    let head_start = key.head_start()?;
    let body_start = u16::try_from(usize::from(head_start) + head_bytes).ok()?;
    let (head, text) = (&x.backends.head, &x.backends.head_text);
    let value = |name| head.field(name).map(|field| field.value.of(text));
    let is_whole = matches!(head.status, 200 | 206);
    let modified = value(ReplyName::LastModified).filter(|_| is_whole).and_then(date::parse);
    let fixed = FileHead {
        valid_s: freshness.valid_s,
        updating_s: freshness.updating_s,
        error_s: freshness.error_s,
        last_modified: modified.unwrap_or(-1),
        date: now_s(),
        valid_ms: 0,
        head_start,
        body_start,
        etag: value(ReplyName::ETag).filter(|_| is_whole).unwrap_or_default(),
        vary: &freshness.vary,
        variant,
        checksum: 0,
    };
    Some(fixed.write(key).to_vec())
}

impl ReplySink for CacheFill {
    fn put(&mut self, piece: &Chunk) -> Result<(), SinkFailed> {
        let written = match piece {
            Chunk::Bytes(bytes) => self.add(bytes.as_ref()),
            Chunk::File(slice) => self.add_file(slice),
            Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => Ok(()),
        };
        written.map_err(|error| {
            self.log_failure("pwrite()", &error);
            SinkFailed
        })
    }

    fn end(mut self: Box<Self>) {
        let (facts, modified_ns) = match self.complete() {
            Ok(completed) => completed,
            Err(error) => return self.log_failure("pwrite()", &error),
        };
        if !self.is_admitted(modified_ns) {
            return;
        }
        let Self { store, digest, _fill, file, place, log, .. } = *self;
        let from = file.path().to_owned();
        match file.move_to(&place, MODE) {
            Ok(()) => store.zone.store(&digest, facts, now_s()),
            Err((call, error)) => {
                let (from, place, errno) = (from.display(), place.display(), Errno(&error));
                let what = format_args!("{call} \"{from}\" to \"{place}\" failed{errno}");
                log.write(Level::Crit, format_args!("{what}"));
            }
        }
    }

    fn log(&self) -> &Rc<DetachedLog> {
        &self.log
    }
}
