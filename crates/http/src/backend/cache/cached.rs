//! A cached reply: its file, read and checked, and the answer made of it.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use cache::checksum::Checksum;
use cache::file_head::FIXED_BYTES;
use cache::rules::request::StoredAge;
use cache::zone::BLOCK_BYTES;
use cache::{CacheKey, FileFacts, FileHead, FileProblem, Freshness, KeyDigest};
use net::{clock, file};
use observe::{Errno, Level, Text};
use wire::reply::ReplyHead;

use super::super::head::{self, ReplySource};
use super::super::protocol::ReplyLength;
use super::super::protocol::stored::StoredForm;
use super::super::values::IgnoredFields;
use super::path::CacheStore;
use super::state::{CacheState, CacheStatus};
use super::{Family, ReplyRules, reply_fields};
use crate::exchange::{Body, Bytes, Exchange, FileSlice, Flow};
use crate::files::{FileLookup, FileSource, FoundFile, Links, PathError, Want};
use crate::paths;

/// The largest file whose checksum is computed at once; that of a larger one would delay others.
const CHECKED_BYTES_MAX: u64 = 1024 * 1024;
/// The bytes of a larger one that are read at once.
const CHECKED_PIECE: usize = 256 * 1024;
/// Bytes of a file that are read at once, if it is not in memory: enough for most heads, and for
/// small replies as a whole.
const READ_BYTES: usize = 4096;

/// A reply from the cache.
#[derive(Clone)]
pub(super) struct CachedReply {
    pub(super) path: PathBuf,
    found: FoundFile,
    /// The head in its stored form.
    head: Vec<u8>,
    body_start: u64,
    pub(super) valid_s: i64,
    pub(super) updating_s: i64,
    pub(super) error_s: i64,
    pub(super) last_modified: i64,
    pub(super) etag: Vec<u8>,
    pub(super) vary: Vec<u8>,
    pub(super) variant: KeyDigest,
    pub(super) checksum: u32,
    pub(super) head_start: u16,
    /// The second since which it ages.
    pub(super) made_s: i64,
    /// Whether it may not be used without asking the backend, since it has expired.
    pub(super) forbids_stale: bool,
}

fn checksum_of(file: &File, size: u64) -> io::Result<u32> {
    let (mut checksum, mut piece) = (Checksum::default(), vec![0; CHECKED_PIECE]);
    let mut at = FIXED_BYTES as u64;
    while at < size {
        let count = (size - at).min(CHECKED_PIECE as u64) as usize;
        file.read_exact_at(&mut piece[..count], at)?;
        checksum.add(&piece[..count]);
        at += count as u64;
    }
    Ok(checksum.value())
}

/// Why a key has no cached reply.
pub(super) enum NotCached {
    /// There is no file.
    Absent,
    /// The file cannot be used.
    Invalid(FileProblem),
    Failed(PathError),
}

impl CachedReply {
    /// Reads the file of a key.
    pub(super) fn open(x: &Exchange, path: PathBuf, key: &CacheKey) -> Result<Self, NotCached> {
        let look = FileLookup {
            path: path.as_os_str().as_bytes(),
            want: Want::Content,
            links: Links::Follow,
            trusted: 0,
            rules: None,
            content_size_max: paths::content_size_max(x),
            now_ms: clock::now_ms(),
            unix_ms: clock::unix_ms(),
        };
        let found = look.find(|| x.generation.worker.of()).map_err(|failed| {
            match failed.is_not_found() {
                true => NotCached::Absent,
                false => NotCached::Failed(failed),
            }
        })?;
        Self::read(path, found, key)
    }

    fn read(path: PathBuf, found: FoundFile, key: &CacheKey) -> Result<Self, NotCached> {
        let size = found.stat.size;
        let mut bytes = Vec::new();
        let read = match &found.source {
            FileSource::Memory(content) => &content[..],
            FileSource::File(file) => {
                read_head(file, size, &mut bytes)
                    .map_err(|error| NotCached::Failed(PathError { call: "pread()", error }))?;
                &bytes
            }
            FileSource::Closed => &[],
        };
        let head = FileHead::read(read, size, key).map_err(NotCached::Invalid)?;
        let range = usize::from(head.head_start)..usize::from(head.body_start);
        let text = read.get(range).ok_or(NotCached::Invalid(FileProblem::TooSmall))?;
        Ok(Self {
            path,
            head: text.to_vec(),
            body_start: head.body_start.into(),
            valid_s: head.valid_s,
            updating_s: head.updating_s,
            error_s: head.error_s,
            last_modified: head.last_modified,
            etag: head.etag.to_vec(),
            vary: head.vary.to_vec(),
            variant: head.variant,
            checksum: head.checksum,
            head_start: head.head_start,
            made_s: head.date,
            forbids_stale: false,
            found: or_content(found, bytes),
        })
    }

    /// Whether head and body fit each other; the head becomes that of the backend's reply.
    pub(super) fn parse(&self, x: &mut Exchange, form: &StoredForm, to_head: bool) -> bool {
        let mut input = self.head.clone();
        let mut head = std::mem::take(&mut x.backends.head);
        head.reset();
        let read = form.read(&mut input, &mut head, to_head);
        x.backends.head = head;
        let Some((bytes, length)) = read else { return false };
        x.backends.note_head(&input[..bytes]);
        let body = self.body_bytes();
        match length {
            ReplyLength::Known(length) => length == body,
            ReplyLength::None | ReplyLength::Unknown => true,
        }
    }

    /// Makes it the exchange's reply, once its head was parsed.
    pub(super) fn answer(
        &self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        store: &CacheStore,
        status: CacheStatus,
    ) -> Flow {
        CacheState::set(x, status);
        if metrics::are_wanted() {
            let bytes = if x.request.header_only { 0 } else { self.body_bytes() };
            store.counts.own().answered(status, bytes);
        }
        x.action = "sending response to client";
        head::drop_duplicates(x);
        let mut buffering = true;
        let ReplyRules { conf, filter, rewriter } = rules;
        if let Some(flow) = head::apply_accel_fields(x, conf, rewriter, &mut buffering) {
            return flow;
        }
        head::copy(x, conf, filter, rewriter, ReplySource::Cache);
        x.reply.content_length = head::announced_length(x);
        x.reply.body = self.body();
        reply_fields::add_to_stored(x, self.age());
        Flow::Done
    }

    /// What the use of the reply depends on.
    pub(super) fn age(&self) -> StoredAge {
        StoredAge { valid_s: self.valid_s, made_s: self.made_s }
    }

    /// The head in its stored form.
    pub(super) fn stored_head(&self) -> &[u8] {
        &self.head
    }

    /// Replaces the head, but not in the file.
    pub(super) fn change_head(&mut self, form: &StoredForm, text: &[u8]) {
        self.head.clear();
        form.write(text, &mut self.head);
    }

    pub(super) fn stat(&self) -> file::Stat {
        self.found.stat
    }

    pub(super) fn body_start(&self) -> u64 {
        self.body_start
    }

    /// The times that its own fields say, counted from now.
    pub(super) fn freshness(x: &Exchange, family: &Family, now_s: i64) -> Freshness {
        freshness(&x.backends.head, &x.backends.head_text, family, now_s)
    }

    /// Whether the file has what was stored, as far as that is known: a loss of power may have
    /// taken some of it.
    pub(super) fn is_intact(&self) -> bool {
        if self.checksum == 0 || self.size() > CHECKED_BYTES_MAX {
            return true;
        }
        let mut checksum = Checksum::default();
        match &self.found.source {
            FileSource::Memory(content) => checksum.add(&content[FIXED_BYTES..]),
            FileSource::File(file) => {
                let mut contents = vec![0; self.size() as usize - FIXED_BYTES];
                if file.read_exact_at(&mut contents, FIXED_BYTES as u64).is_err() {
                    return false;
                }
                checksum.add(&contents);
            }
            FileSource::Closed => {}
        }
        checksum.value() == self.checksum
    }

    /// The same of a file that is too large to be read at once: the check, for another thread.
    /// `None`: the file is not large, or has no checksum.
    pub(super) fn long_check(&self) -> Option<impl FnOnce() -> bool + Send + use<>> {
        let FileSource::File(file) = &self.found.source else { return None };
        let is_long = self.checksum != 0 && self.size() > CHECKED_BYTES_MAX;
        let file = if is_long { file.try_clone().ok()? } else { return None };
        let (expected, size) = (self.checksum, self.size());
        Some(move || checksum_of(&file, size).is_ok_and(|found| found == expected))
    }

    fn size(&self) -> u64 {
        self.found.stat.size
    }

    /// When the file was written, in nanoseconds since 1970.
    pub(super) fn modified_ns(&self) -> u64 {
        self.found.stat.modified_ns()
    }

    /// What the index needs to know of the file.
    pub(super) fn facts(&self) -> FileFacts {
        let unknown = FileFacts { inode: 0, blocks: self.found.stat.size.div_ceil(BLOCK_BYTES) };
        fs::metadata(&self.path).map_or(unknown, |metadata| FileFacts::of(&metadata))
    }

    /// Writes that the file is valid for longer, unless it has changed meanwhile. Returns when it
    /// was written, which is not before `earliest_ns`.
    pub(super) fn renew(
        &self,
        key: &CacheKey,
        freshness: &Freshness,
        date: i64,
        earliest_ns: u64,
    ) -> io::Result<u64> {
        let file = match File::options().read(true).write(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        if file::stat_open(&file).ok() != Some(self.found.stat) {
            return Ok(0);
        }
        let fixed = FileHead {
            valid_s: freshness.valid_s,
            updating_s: freshness.updating_s,
            error_s: freshness.error_s,
            last_modified: self.last_modified,
            date,
            valid_ms: 0,
            head_start: self.head_start,
            body_start: self.body_start as u16,
            etag: &self.etag,
            vary: &self.vary,
            variant: self.variant,
            checksum: self.checksum,
        };
        file.write_all_at(&fixed.write(key), 0)?;
        let modified_ns = file::stat_open(&file).map_err(|failed| failed.error)?.modified_ns();
        if modified_ns < earliest_ns {
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(earliest_ns))?;
        }
        Ok(modified_ns.max(earliest_ns))
    }

    pub(super) fn log_failure(&self, x: &Exchange, call: &str, error: &io::Error) {
        let (path, errno) = (self.path.display(), Errno(error));
        x.log(Level::Crit, format_args!("{call} \"{path}\" failed{errno}"));
    }

    pub(super) fn log_invalid_head(&self, x: &Exchange) {
        let path = self.path.display();
        x.log(Level::Crit, format_args!("cache file \"{path}\" contains invalid header"));
    }

    pub(super) fn body_bytes(&self) -> u64 {
        self.found.stat.size - self.body_start
    }

    fn body(&self) -> Body {
        let (start, end) = (self.body_start, self.found.stat.size);
        match &self.found.source {
            _ if start == end => Body::Empty,
            FileSource::Memory(content) => {
                Body::Bytes(Bytes::Kept(content.clone(), start as u32, end as u32))
            }
            FileSource::File(file) => Body::File(FileSlice { file: file.clone(), start, end }),
            FileSource::Closed => Body::Empty,
        }
    }
}

/// What the fields of a reply say about storing it.
pub(super) fn freshness(head: &ReplyHead, text: &[u8], family: &Family, now_s: i64) -> Freshness {
    let mut freshness = Freshness::default();
    for field in &head.fields {
        let ignored = IgnoredFields::of_caching(field.id);
        if ignored == 0 {
            continue;
        }
        let is_ignored = family.ignore_headers.is_some_and(|fields| fields.has(ignored));
        freshness.add(field.id, field.value.of(text), is_ignored, now_s);
    }
    freshness
}

/// Reads the beginning of a file, up to its body.
fn read_head(file: &Rc<File>, size: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut wanted = READ_BYTES.min(usize::try_from(size).unwrap_or(usize::MAX));
    loop {
        let before = bytes.len();
        bytes.resize(wanted, 0);
        if let Err(error) = file.read_exact_at(&mut bytes[before..], before as u64) {
            bytes.truncate(before);
            // It has become shorter meanwhile: what was read is checked.
            return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(()) } else { Err(error) };
        }
        let body_start = match bytes.get(56..58) {
            Some(&[low, high]) if bytes.len() >= FIXED_BYTES => u16::from_ne_bytes([low, high]),
            _ => 0,
        };
        wanted = usize::from(body_start);
        if wanted <= bytes.len() || u64::from(body_start) > size {
            return Ok(());
        }
    }
}

/// The file, or what was read of it if that is all.
fn or_content(found: FoundFile, bytes: Vec<u8>) -> FoundFile {
    match bytes.len() as u64 == found.stat.size {
        true => FoundFile { source: FileSource::Memory(bytes.into()), ..found },
        false => found,
    }
}

/// Logs a file that cannot be used.
pub(super) fn log_invalid(x: &Exchange, path: &Path, problem: FileProblem) {
    let level = match problem {
        FileProblem::Version => Level::Info,
        _ => Level::Crit,
    };
    let (path, what) = (Text(path.as_os_str().as_bytes()), problem.message());
    x.log(level, format_args!("cache file \"{path}\" {what}"));
}
