//! Log files: registered while the configuration is read, opened by the process that runs it.
//!
//! The master process opens every log with its own rights and passes the descriptors on; a single
//! process opens them itself. On `USR1` they are reopened. A writer holds the slot, not the
//! descriptor, and detects a new file by [`LogSlot::version`].
//!
//! A configuration holds a [`LogFile`], writers hold its [`LogSlot`]. The file is closed when both
//! are dropped; writers drop theirs once no configuration holds the [`LogFile`] any more.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use conf::Span;

use crate::{Buffering, Errno};

/// All log files of a configuration, in order of mention, kept in its registry.
#[derive(Clone, Default)]
pub struct LogFiles {
    list: Vec<Arc<LogFile>>,
    stderr: bool,
}

/// One file, as held by the configuration that names it.
pub struct LogFile {
    slot: Arc<LogSlot>,
}

/// The state of one file, shared with its writers.
pub struct LogSlot {
    path: PathBuf,
    /// The line that names the file first; `None`: it is a default, or from the command line.
    named: Option<Span>,
    number: SlotNumber,
    current: Mutex<Option<Arc<File>>>,
    version: AtomicU32,
    buffering: OnceLock<Buffering>,
}

/// A log that could not be opened.
pub struct LogOpenError {
    pub path: PathBuf,
    /// The line that names the file.
    pub named: Option<Span>,
    pub error: io::Error,
}

impl LogFiles {
    /// The file for a path that no line names.
    pub fn at(&mut self, path: &Path) -> Arc<LogFile> {
        self.named(path, None)
    }

    /// The file for a path that a line names.
    pub fn named(&mut self, path: &Path, line: Option<Span>) -> Arc<LogFile> {
        if let Some(known) = self.list.iter().find(|file| file.path == path) {
            return known.clone();
        }
        let slot = Arc::new(LogSlot {
            path: path.to_owned(),
            named: line,
            number: SlotNumber::take(),
            current: Mutex::new(None),
            version: AtomicU32::new(0),
            buffering: OnceLock::new(),
        });
        let file = Arc::new(LogFile { slot });
        self.list.push(file.clone());
        file
    }

    /// Records that a log writes to standard error.
    pub(crate) fn note_stderr(&mut self) {
        self.stderr = true;
    }

    /// Whether a log at any level of the configuration writes to standard error.
    pub fn has_stderr(&self) -> bool {
        self.stderr
    }

    /// The files: the same configuration has the same files in the same order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LogFile>> {
        self.list.iter()
    }

    /// Opens all files that are not open, for a configuration that is about to run.
    pub fn open(&self) -> Result<(), LogOpenError> {
        self.closed().try_for_each(|file| file.reopen())
    }

    /// Fails if [`open`](Self::open) would, as far as this can be determined without creating a
    /// file; `may_make` decides for a file that does not exist.
    pub fn try_out(&self, may_make: impl Fn(&Path) -> io::Result<()>) -> Result<(), LogOpenError> {
        self.closed().try_for_each(|file| {
            let tried = match append_to_existing(&file.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => may_make(&file.path),
                tried => tried,
            };
            tried.map_err(|error| file.failed(error))
        })
    }

    fn closed(&self) -> impl Iterator<Item = &Arc<LogFile>> {
        self.list.iter().filter(|file| file.current().is_none())
    }

    /// Reopens all files. A file that cannot be opened is reported, and the old one stays in use.
    pub fn reopen(&self) -> Vec<LogOpenError> {
        self.list.iter().filter_map(|file| file.reopen().err()).collect()
    }
}

impl LogFile {
    pub(crate) fn slot(&self) -> &Arc<LogSlot> {
        &self.slot
    }
}

impl Deref for LogFile {
    type Target = LogSlot;
    fn deref(&self) -> &LogSlot {
        &self.slot
    }
}

impl LogSlot {
    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn number(&self) -> u32 {
        self.number.0
    }

    /// How its lines are buffered, if they are.
    pub fn buffering(&self) -> Option<&Buffering> {
        self.buffering.get()
    }

    /// Sets the buffering; false: it was already set differently.
    pub fn set_buffering(&self, buffering: Buffering) -> bool {
        *self.buffering.get_or_init(|| buffering) == buffering
    }

    /// Changes whenever the open file is replaced.
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    pub fn current(&self) -> Option<Arc<File>> {
        self.lock().clone()
    }

    /// Replaces the open file.
    pub fn put(&self, file: File) {
        *self.lock() = Some(Arc::new(file));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Opens the file by its path, and replaces the open file.
    pub fn reopen(&self) -> Result<(), LogOpenError> {
        match append_to(&self.path) {
            Ok(file) => {
                self.put(file);
                Ok(())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> LogOpenError {
        LogOpenError { path: self.path.clone(), named: self.named, error }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<File>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number unique among the slots of the process, by which threads find their buffers. Numbers are
/// reused, so that they stay small after many reloads.
struct SlotNumber(u32);

struct SlotNumbers {
    free: Vec<u32>,
    taken_max: u32,
}

static SLOT_NUMBERS: Mutex<SlotNumbers> =
    Mutex::new(SlotNumbers { free: Vec::new(), taken_max: 0 });

impl SlotNumber {
    fn take() -> Self {
        let mut numbers = SLOT_NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        Self(numbers.free.pop().unwrap_or_else(|| {
            numbers.taken_max += 1;
            numbers.taken_max - 1
        }))
    }
}

impl Drop for SlotNumber {
    fn drop(&mut self) {
        SLOT_NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.0);
    }
}

/// Opens a file for appending, with nginx's access rights.
pub fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o644).open(path)
}

/// Whether an existing file can be appended to. Pipes are not opened: that could block, or be
/// noticed at the other end.
fn append_to_existing(path: &Path) -> io::Result<()> {
    if path.metadata()?.file_type().is_fifo() {
        return Ok(());
    }
    OpenOptions::new().append(true).open(path).map(drop)
}

/// One write for all bytes, so that lines of several writers do not mix.
pub(crate) fn write_once(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// nginx's message.
impl fmt::Display for LogOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "open() \"{}\" failed{}", self.path.display(), Errno(&self.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slot_per_path() {
        let mut files = LogFiles::default();
        let first = files.at(Path::new("/a"));
        assert!(Arc::ptr_eq(&first, &files.at(Path::new("/a"))));
        files.at(Path::new("/b"));
        assert_eq!(files.iter().count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_reported_in_nginxs_words() {
        let mut files = LogFiles::default();
        files.at(Path::new("/nonexistent/weir.log"));
        let error = files.open().err().map(|error| error.to_string());
        let expected =
            "open() \"/nonexistent/weir.log\" failed (2: No such file or directory)".to_owned();
        assert_eq!(error, Some(expected));
    }
}
