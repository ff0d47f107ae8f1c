//! The error log: lines in nginx's format or in JSON, to files, stderr and syslog, each with its
//! own level.
//!
//! Checking whether a level is enabled costs a load and a test; only then is the message formatted,
//! on the stack, and every destination gets the line in one write.

mod destination;
mod message;
mod tags;
mod value;

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use conf::Load;

use crate::{Level, LevelSet, LineBuffer, LogFile, system};
pub use destination::tell;
use destination::{LogDestination, to_stderr};
use message::{ErrorLogForm, LogMessage};
pub use message::{KeptContext, MessageContext, MessageSource};
pub use tags::{ErrorLogTags, MainLogTags};

/// The destinations of messages from one place in the configuration.
#[derive(Clone, Default)]
pub struct ErrorLog {
    sinks: Vec<Sink>,
    /// The levels that any sink accepts.
    wanted: LevelSet,
    /// Fields that lines in JSON have in addition, in JSON.
    tags: Arc<[u8]>,
    /// Whether a log at another level of the configuration writes to standard error.
    stderr_elsewhere: bool,
}

#[derive(Clone)]
struct Sink {
    levels: LevelSet,
    form: ErrorLogForm,
    destination: Arc<LogDestination>,
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
        log.add(Sink { levels, form: ErrorLogForm::Text, destination: Arc::new(destination) });
        log
    }

    /// The log of a block inside `http {}` or `stream {}`: what it does not have is that of the
    /// main level.
    pub fn of_block(
        own: Option<&Self>,
        tags: Option<&ErrorLogTags>,
        load: &mut Load<'_>,
    ) -> Arc<Self> {
        let main = load.registry.of::<MainLog>().0.clone();
        if own.is_none() && tags.is_none() {
            return main;
        }
        let mut log = own.unwrap_or(&main).clone();
        log.tags = tags.map_or_else(|| main.tags.clone(), |tags| tags.fixed().into());
        Arc::new(log)
    }

    /// Sets the tags of the main level.
    pub fn set_tags(&mut self, tags: &MainLogTags) {
        self.tags = tags.0.fixed().into();
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
    pub fn enabled(&self, level: Level, source: MessageSource<'_>) -> bool {
        self.wanted.has(level) || source.debug
    }

    /// Whether any destination gets lines in JSON.
    pub fn has_json(&self) -> bool {
        self.sinks.iter().any(|sink| sink.form == ErrorLogForm::Json)
    }

    /// Keeps the context of a session for messages after its end.
    pub fn keep(&self, context: impl Fn(&mut MessageContext<'_>)) -> KeptContext {
        KeptContext::new(self.has_json(), context)
    }

    /// Writes a message with the fields of `context` about the request, unless the message is a
    /// debug one. Does nothing if the level is not [`enabled`](Self::enabled).
    pub fn write(
        &self,
        level: Level,
        source: MessageSource<'_>,
        message: fmt::Arguments<'_>,
        context: impl Fn(&mut MessageContext<'_>),
    ) {
        if self.enabled(level, source) {
            self.deliver(&LogMessage { level, source, text: message, context: &context });
        }
    }

    fn deliver(&self, message: &LogMessage<'_>) {
        let wants_copy = self.wants_copy(message);
        if wants_copy || self.sinks_of(ErrorLogForm::Text, message).next().is_some() {
            let mut line = LineBuffer::new();
            let start = message.write_text(&mut line);
            self.send(ErrorLogForm::Text, message, &line);
            if wants_copy {
                copy_to_stderr(message.level, &line.as_bytes()[start..]);
            }
        }
        if self.sinks_of(ErrorLogForm::Json, message).next().is_some() {
            self.send(ErrorLogForm::Json, message, &message.json(&self.tags));
        }
    }

    /// The destinations that accept the message, in this form.
    fn sinks_of(
        &self,
        form: ErrorLogForm,
        message: &LogMessage<'_>,
    ) -> impl Iterator<Item = &Sink> {
        let (level, debug) = (message.level, message.source.debug);
        self.sinks.iter().filter(move |s| s.form == form && (s.levels.has(level) || debug))
    }

    fn send(&self, form: ErrorLogForm, message: &LogMessage<'_>, line: &LineBuffer) {
        for sink in self.sinks_of(form, message) {
            sink.destination.write(message.level, line.as_bytes());
        }
    }

    /// Whether standard error gets a copy: it is no destination itself.
    fn wants_copy(&self, message: &LogMessage<'_>) -> bool {
        let has = |form| {
            self.sinks_of(form, message)
                .any(|sink| matches!(*sink.destination, LogDestination::Stderr))
        };
        message.level <= Level::Warn
            && copies_to_stderr()
            && !has(ErrorLogForm::Text)
            && !has(ErrorLogForm::Json)
    }
}

fn copy_to_stderr(level: Level, message: &[u8]) {
    let mut copy = LineBuffer::new();
    copy.format(format_args!("{}: [{}] ", system().name, level.name()));
    copy.push(message.strip_suffix(b"\n").unwrap_or(message));
    copy.end();
    to_stderr(copy.as_bytes());
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
