//! The error log: lines in nginx's format, to files, stderr and syslog, each with its own level.
//!
//! Checking whether a level is enabled costs a load and a test; only then is the message formatted,
//! on the stack, and every destination gets the line in one write.

mod value;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::files::write_once;
use crate::{Level, LevelSet, LineBuffer, LogFile, Stamps, SyslogSender, system};

/// The destinations of messages from one place in the configuration.
#[derive(Clone, Default)]
pub struct ErrorLog {
    sinks: Vec<Sink>,
    /// The levels that any sink accepts.
    wanted: LevelSet,
    /// Whether a log at another level of the configuration writes to standard error.
    stderr_elsewhere: bool,
}

#[derive(Clone)]
struct Sink {
    levels: LevelSet,
    destination: Arc<LogDestination>,
}

enum LogDestination {
    Stderr,
    File {
        file: Arc<LogFile>,
        /// The second in which the disk was full: no write is tried until the next one.
        full_second: AtomicI64,
    },
    Syslog(Mutex<SyslogSender>),
}

/// The origin of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageSource {
    /// The connection's number, after `*`.
    pub connection: Option<u64>,
    /// `debug_connection`: every level is enabled, regardless of the log.
    pub debug: bool,
}

impl ErrorLog {
    /// A log with one destination: a file.
    pub fn to_file(file: Arc<LogFile>, level: Level) -> Self {
        Self::one(LogDestination::file(file), LevelSet::down_to(level))
    }

    /// A log with one destination: standard error.
    pub fn to_stderr(level: Level) -> Self {
        Self::one(LogDestination::Stderr, LevelSet::down_to(level))
    }

    fn one(destination: LogDestination, levels: LevelSet) -> Self {
        let mut log = Self::default();
        log.add(Sink { levels, destination: Arc::new(destination) });
        log
    }

    fn add(&mut self, sink: Sink) {
        self.wanted = self.wanted.or(sink.levels);
        self.sinks.push(sink);
    }

    /// Adds all destinations of another log.
    pub fn extend(&mut self, other: &Self) {
        other.sinks.iter().for_each(|sink| self.add(sink.clone()));
    }

    /// Whether any destination is a file or stderr; if not, nginx's default file is added.
    pub fn has_file(&self) -> bool {
        self.sinks.iter().any(|sink| !matches!(*sink.destination, LogDestination::Syslog(_)))
    }

    /// Records that a log at another level writes to standard error.
    pub fn note_stderr_elsewhere(&mut self) {
        self.stderr_elsewhere = true;
    }

    /// Whether stderr is a destination, of this log or of one at another level; if not, nginx
    /// redirects stderr to the main log's file.
    pub fn has_stderr(&self) -> bool {
        self.stderr_elsewhere
            || self.sinks.iter().any(|sink| matches!(*sink.destination, LogDestination::Stderr))
    }

    /// The first file among the destinations.
    pub fn file(&self) -> Option<&Arc<LogFile>> {
        self.sinks.iter().find_map(|sink| match &*sink.destination {
            LogDestination::File { file, .. } => Some(file),
            _ => None,
        })
    }

    /// Whether a message of this level would be written.
    #[inline]
    pub fn enabled(&self, level: Level, source: MessageSource) -> bool {
        self.wanted.has(level) || source.debug
    }

    /// Writes a message, followed by the text of `context` about the request unless the message is
    /// a debug one. Does nothing if the level is not [`enabled`](Self::enabled).
    pub fn write(
        &self,
        level: Level,
        source: MessageSource,
        message: fmt::Arguments<'_>,
        context: impl FnOnce(&mut LineBuffer),
    ) {
        if !self.enabled(level, source) {
            return;
        }
        let mut line = LineBuffer::new();
        let stamps = Stamps::now();
        line.push(&stamps.error_log);
        let (pid, thread) = (std::process::id(), (system().thread_id)());
        line.format(format_args!(" [{}] {pid}#{thread}: ", level.name()));
        if let Some(connection) = source.connection {
            line.format(format_args!("*{connection} "));
        }
        let message_start = line.len();
        line.format(message);
        if !level.is_debug() {
            context(&mut line);
        }
        line.escape_controls(message_start);
        line.end();
        self.deliver(level, source, &line, &line.as_bytes()[message_start..]);
    }

    fn deliver(&self, level: Level, source: MessageSource, line: &LineBuffer, message: &[u8]) {
        let mut on_stderr = false;
        for sink in self.sinks.iter().filter(|s| s.levels.has(level) || source.debug) {
            on_stderr |= matches!(*sink.destination, LogDestination::Stderr);
            sink.destination.write(level, line.as_bytes());
        }
        if !on_stderr && level <= Level::Warn && STDERR_COPIES.load(Ordering::Relaxed) {
            let mut copy = LineBuffer::new();
            copy.format(format_args!("{}: [{}] ", system().name, level.name()));
            copy.push(message.strip_suffix(b"\n").unwrap_or(message));
            copy.end();
            to_stderr(copy.as_bytes());
        }
    }
}

impl LogDestination {
    fn file(file: Arc<LogFile>) -> Self {
        Self::File { file, full_second: AtomicI64::new(-1) }
    }

    fn write(&self, level: Level, line: &[u8]) {
        match self {
            Self::Stderr => to_stderr(line),
            Self::File { file, full_second } => to_file(file, full_second, line),
            Self::Syslog(sender) => to_syslog(sender, level, line),
        }
    }
}

/// Writes a text to standard error. Unlike `eprint!` it does not panic if that fails.
pub fn tell(text: fmt::Arguments<'_>) {
    to_stderr(text.to_string().as_bytes());
}

fn to_stderr(line: &[u8]) {
    // A failure cannot be reported anywhere.
    let _ = io::stderr().write_all(line);
}

fn to_file(file: &LogFile, full_second: &AtomicI64, line: &[u8]) {
    let Some(file) = file.current() else { return };
    let second = Stamps::now().second();
    if full_second.load(Ordering::Relaxed) == second {
        return;
    }
    if let Err(error) = write_once(&file, line)
        && error.kind() == io::ErrorKind::StorageFull
    {
        full_second.store(second, Ordering::Relaxed);
    }
}

thread_local! {
    /// Set while sending: a failure is logged to the main log, which may itself send, and fail.
    static SENDING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn to_syslog(sender: &Mutex<SyslogSender>, level: Level, line: &[u8]) {
    if SENDING.replace(true) {
        return;
    }
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    let mut message = Vec::with_capacity(line.len() + 128);
    sender.target().write_head(level.severity(), &mut message);
    message.extend_from_slice(line);
    if let Err(failed) = sender.send(&message) {
        failed.tell(sender.target());
    }
    SENDING.set(false);
}

static STDERR_COPIES: AtomicBool = AtomicBool::new(true);
static MAIN: RwLock<Option<Arc<ErrorLog>>> = RwLock::new(None);

/// Sets whether messages from `warn` up are copied to stderr, as they are until the server has
/// started.
pub fn stderr_copies(on: bool) {
    STDERR_COPIES.store(on, Ordering::Relaxed);
}

/// Whether messages are copied to stderr now.
pub fn copies_to_stderr() -> bool {
    STDERR_COPIES.load(Ordering::Relaxed)
}

/// The log for messages that belong to no connection. Until one is set, it has no destination and
/// the level `notice`, so that errors during the start appear on stderr.
pub fn main_log() -> Arc<ErrorLog> {
    let set = MAIN.read().unwrap_or_else(PoisonError::into_inner).clone();
    set.unwrap_or_else(|| {
        let wanted = LevelSet::down_to(Level::Notice);
        Arc::new(ErrorLog { wanted, ..ErrorLog::default() })
    })
}

/// The main level's log of a configuration being loaded, kept in its registry: levels without an
/// `error_log` use it.
#[derive(Clone)]
pub struct MainLog(pub Arc<ErrorLog>);

impl Default for MainLog {
    fn default() -> Self {
        Self(main_log())
    }
}

/// Sets the log for messages that belong to no connection.
pub fn set_main_log(log: Arc<ErrorLog>) {
    *MAIN.write().unwrap_or_else(PoisonError::into_inner) = Some(log);
}

/// The most lines that are copied.
const COPIED_LINES_MAX: usize = 1000;

thread_local! {
    static COPIES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Copies what this thread writes to the main log, from the level `notice` up, until
/// [`take_copies`].
pub fn begin_copies() {
    COPIES.set(Some(Vec::new()));
}

/// The lines that were copied, each with its level and without its time.
pub fn take_copies() -> Vec<String> {
    COPIES.take().unwrap_or_default()
}

/// Writes to the main log.
pub fn log(level: Level, message: fmt::Arguments<'_>) {
    if level <= Level::Notice {
        COPIES.with_borrow_mut(|copies| {
            if let Some(lines) = copies.as_mut().filter(|lines| lines.len() < COPIED_LINES_MAX) {
                lines.push(format!("[{}] {message}", level.name()));
            }
        });
    }
    main_log().write(level, MessageSource::default(), message, |_| ());
}

#[cfg(test)]
mod tests;
