//! A reply on its way into the cache: a temporary file beside the client, moved to its place when
//! it is complete.
//!
//! The head of the file is written with the checksum of all that follows it, so it comes last: a
//! small reply is one write, a large one has its checksum put in afterwards. Before each write, the
//! cache makes room for it.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use cache::checksum::Checksum;
use cache::file_head::CHECKSUM_AT;
use cache::progress::ProgressWriter;
use cache::room::FillRoom;
use cache::{CacheKey, FileFacts, FileHead, Fill, FillFailure, Freshness, KeyDigest, PurgeSubject};
use observe::{Errno, Level, Text};
use wire::date;
use wire::reply::ReplyName;

use super::super::call::Answered;
use super::super::fetch::{ReplySink, SinkFailed};
use super::super::protocol::ReplyLength;
use super::super::values::NextUpstream;
use super::attempt::{CacheAttempt, now_s, refuse};
use super::path::CacheStore;
use super::reply_fields;
use super::state::{self, CacheStatus};
use crate::exchange::{Chunk, DetachedLog, Exchange, FileSlice};
use crate::files::{TempFile, TempFileEnd, TempPath};

/// The bytes that wait for a write.
const PENDING_MAX: usize = 64 * 1024;
/// The permissions of cache files, as in nginx.
pub(super) const MODE: u32 = 0o600;

/// A reply being stored.
pub(crate) struct CacheFill {
    store: Arc<CacheStore>,
    digest: KeyDigest,
    key: CacheKey,
    /// Values of fields with tags.
    tags: Vec<u8>,
    /// The newest purge when the request began.
    begun_ns: u64,
    /// The bytes of the body so far.
    body_bytes: u64,
    /// What others wait for; given back when the file is in its place.
    fill: Option<Fill>,
    /// For the counters.
    outcome: CacheStatus,
    file: TempFile,
    room: FillRoom,
    /// For those who follow it.
    writer: Option<ProgressWriter>,
    /// Where the body begins in the file.
    body_start: u64,
    place: PathBuf,
    /// Bytes that are not written yet.
    pending: Vec<u8>,
    /// Whether all bytes so far are in `pending`.
    is_unwritten: bool,
    checksum: Checksum,
    log: Rc<DetachedLog>,
}

/// Why a reply is not stored after all.
enum FillError {
    /// The cache has no room for it, within its limits.
    NoRoom,
    Io(io::Error),
}

impl From<io::Error> for FillError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
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
            self.leave_unstored(x.backends.head.status);
            return None;
        };
        let no_cache = self.cache.conf.no_cache.as_ref();
        if self.is_unstored || no_cache.is_some_and(|no_cache| no_cache.any(x)) {
            return None;
        }
        if matches!(answered.body, ReplyLength::Known(length) if length > self.store.body_max) {
            x.log(Level::Info, format_args!("the response is too large for the cache"));
            refuse(self.fill);
            return None;
        }
        self.freshness.valid_s = valid_s;
        reply_fields::note_stored(x, valid_s);
        let text = self.head_to_store(x, &answered.input[..answered.head_bytes]);
        CacheFill::begin(self, x, &text, temp_path)
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
        let tags = attempt.store.tags.values_of(&x.backends.head, &x.backends.head_text);
        let mut head = Vec::with_capacity(text.len());
        attempt.cache.terms.form.write(text, &mut head);
        let begun = begun(x, &attempt.key, &attempt.freshness, variant, head.len());
        let Some(mut pending) = begun else {
            refuse(attempt.fill);
            return None;
        };
        let is_followed = attempt.cache.conf.cache_read_while_writing;
        let CacheAttempt { store, key, fill, begun_ns, .. } = attempt;
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
                room: FillRoom::new(store.zone.clone()),
                writer: publish(fill.as_ref().filter(|_| is_followed), &file, &pending, begun_ns),
                body_start: pending.len() as u64,
                store,
                digest,
                key,
                tags,
                begun_ns,
                body_bytes: 0,
                fill,
                outcome: state::status(x).unwrap_or(CacheStatus::Miss),
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
                refuse(fill);
                None
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), FillError> {
        self.checksum.add(bytes);
        if self.pending.len() + bytes.len() <= PENDING_MAX {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        match bytes.len() < PENDING_MAX {
            true => self.pending.extend_from_slice(bytes),
            false => {
                self.make_room(bytes.len())?;
                self.file.append(bytes)?;
                self.tell_progress();
            }
        }
        Ok(())
    }

    fn add_file(&mut self, slice: &FileSlice) -> Result<(), FillError> {
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

    fn tell_progress(&self) {
        if let Some(writer) = &self.writer {
            writer.advance(self.file.slice().end);
        }
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), FillError> {
        let CacheStore { zone, limits, .. } = &*self.store;
        let free = || net::file::free_bytes(&zone.folder().path).ok();
        match self.room.grow(bytes as u64, limits, free) {
            true => Ok(()),
            false => Err(FillError::NoRoom),
        }
    }

    fn flush(&mut self) -> Result<(), FillError> {
        self.make_room(self.pending.len())?;
        self.is_unwritten = false;
        self.file.append(&self.pending)?;
        self.pending.clear();
        self.tell_progress();
        Ok(())
    }

    /// Writes the rest, and the checksum.
    fn complete(&mut self) -> Result<(FileFacts, u64), FillError> {
        let checksum = self.checksum.value().to_ne_bytes();
        if self.is_unwritten {
            let at = CHECKSUM_AT as usize;
            self.pending[at..at + checksum.len()].copy_from_slice(&checksum);
            self.flush()?;
        } else {
            self.flush()?;
            self.file.write_at(&checksum, CHECKSUM_AT)?;
        }
        Ok(self.file.facts()?)
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

    /// The reply is not stored.
    fn give_up(&mut self, error: &FillError) {
        match error {
            FillError::NoRoom => {
                let path = self.store.zone.folder().path.display();
                let what = format_args!("the cache \"{path}\" has no room for the response");
                self.log.write(Level::Warn, what);
            }
            FillError::Io(error) => self.log_failure("pwrite()", error),
        }
        refuse(self.fill.take());
    }

    fn log_failure(&self, call: &str, error: &io::Error) {
        let (path, errno) = (self.file.path().display(), Errno(error));
        self.log.write(Level::Crit, format_args!("{call} \"{path}\" failed{errno}"));
    }
}

/// Shows a reply to those who wait for it, if they may follow it.
fn publish(
    fill: Option<&Fill>,
    file: &TempFile,
    head: &[u8],
    begun_ns: u64,
) -> Option<ProgressWriter> {
    // Without a descriptor for them, they wait for the end.
    let file = file.share().ok().filter(|_| fill.is_some())?;
    let writer = ProgressWriter::new(file, head.into(), begun_ns);
    fill?.publish(&writer);
    Some(writer)
}

/// The fixed part of a file whose head has `head_bytes`; `None`: the head is too long.
pub(super) fn begun(
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
        date: if freshness.made_s == 0 { now_s() } else { freshness.made_s },
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
        self.body_bytes += match piece {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::File(slice) => slice.len(),
            Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => 0,
        };
        if self.body_bytes > self.store.body_max {
            let what = "the response is larger than \"max_object_size\"";
            self.log.write(Level::Info, format_args!("{what}, it is not cached"));
            refuse(self.fill.take());
            return Err(SinkFailed);
        }
        let mut written = match piece {
            Chunk::Bytes(bytes) => self.add(bytes.as_ref()),
            Chunk::File(slice) => self.add_file(slice),
            Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => Ok(()),
        };
        if written.is_ok() && self.writer.as_ref().is_some_and(ProgressWriter::is_followed) {
            written = CacheFill::flush(self);
        }
        written.map_err(|error| {
            self.give_up(&error);
            SinkFailed
        })
    }

    /// A client that is slow must not keep those waiting who wait for the reply.
    fn file(&self) -> Option<FileSlice> {
        let start = self.body_start;
        self.fill.as_ref().map(|_| FileSlice { start, ..self.file.slice() })
    }

    fn flush(&mut self) -> Result<(), SinkFailed> {
        CacheFill::flush(self).map_err(|error| {
            self.give_up(&error);
            SinkFailed
        })
    }

    fn end(mut self: Box<Self>) {
        let (facts, modified_ns) = match self.complete() {
            Ok(completed) => completed,
            Err(error) => return self.give_up(&error),
        };
        if let Some(writer) = self.writer.take() {
            writer.complete();
        }
        if !self.is_admitted(modified_ns) {
            return;
        }
        // The fill ends when the file is in its place, and its room when its entry counts.
        let Self { store, digest, key, fill, outcome, file, room, place, log, .. } = *self;
        let (bytes, main) = (file.slice().len(), key.digest());
        let from = file.path().to_owned();
        match file.move_to(&place, MODE) {
            Ok(()) => {
                store.zone.store(&digest, facts, now_s());
                if digest != main {
                    store.zone.note_variant(&main, &digest, store.variants_max);
                }
                if metrics::are_wanted() {
                    store.counts.own().stored(outcome, bytes);
                }
                drop((room, fill));
            }
            Err((call, error)) => {
                let (from, place, errno) = (from.display(), place.display(), Errno(&error));
                let what = format_args!("{call} \"{from}\" to \"{place}\" failed{errno}");
                log.write(Level::Crit, format_args!("{what}"));
                refuse(fill);
            }
        }
    }

    fn cut(mut self: Box<Self>) {
        if let Some(fill) = self.fill.take() {
            let reasons = NextUpstream::ERROR;
            fill.fail(FillFailure { status: 502, reasons, is_error: true, was_sent: true });
        }
    }

    fn log(&self) -> &Rc<DetachedLog> {
        &self.log
    }
}
