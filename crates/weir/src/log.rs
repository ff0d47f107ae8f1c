//! The error log of the program itself, until crate `observe` has it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::command_line::CommandLine;
use crate::name::name;

/// nginx's levels, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Emerg = 1,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    Debug,
}

impl Level {
    const NAMES: [&str; 8] = ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];

    /// The level of that name.
    pub fn of(name: &[u8]) -> Option<Self> {
        const ALL: [Level; 8] = [
            Level::Emerg,
            Level::Alert,
            Level::Crit,
            Level::Error,
            Level::Warn,
            Level::Notice,
            Level::Info,
            Level::Debug,
        ];
        ALL.into_iter().find(|level| level.name().as_bytes() == name)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize - 1]
    }
}

/// Where the program's messages go.
pub struct Log {
    sinks: Vec<Sink>,
    /// Grave messages also go to the terminal, until the server runs.
    pub also_stderr: bool,
}

struct Sink {
    path: Option<PathBuf>,
    file: Option<File>,
    level: Level,
}

impl Log {
    /// The log before the configuration is read.
    pub fn first(command: &CommandLine) -> Self {
        let path = command.error_log().map(|path| conf::bytes_path(&path).to_owned());
        let file = path.as_deref().and_then(|path| {
            let complain = |error| {
                let reason = reason(&error);
                eprintln!(
                    "{}: [alert] could not open error log file: open() \"{}\" failed ({reason})",
                    name().word,
                    path.display()
                );
            };
            open(path).map_err(complain).ok()
        });
        let level = if command.test { Level::Info } else { Level::Notice };
        Self { sinks: vec![Sink { path, file, level }], also_stderr: true }
    }

    /// The logs that the configuration names.
    pub fn named(logs: impl IntoIterator<Item = (Option<PathBuf>, Level)>) -> Result<Self, String> {
        let mut sinks = Vec::new();
        for (path, level) in logs {
            let file = match &path {
                Some(path) => Some(open(path).map_err(|error| failed("open()", path, &error))?),
                None => None,
            };
            sinks.push(Sink { path, file, level });
        }
        Ok(Self { sinks, also_stderr: true })
    }

    /// Opens every file again.
    pub fn reopen(&mut self) {
        let mut failures = Vec::new();
        for sink in &mut self.sinks {
            if let Some(path) = &sink.path {
                match open(path) {
                    Ok(file) => sink.file = Some(file),
                    Err(error) => failures.push(failed("open()", path, &error)),
                }
            }
        }
        failures.iter().for_each(|failure| self.write(Level::Emerg, failure));
    }

    pub fn write(&mut self, level: Level, message: &str) {
        let pid = net::process::id();
        let line = format!("{} [{}] {pid}#{pid}: {message}\n", timestamp(), level.name());
        let mut wrote_stderr = false;
        for sink in self.sinks.iter_mut().filter(|sink| level <= sink.level) {
            // Nowhere is left to say that a log cannot be written.
            let _ = match &mut sink.file {
                Some(file) => file.write_all(line.as_bytes()),
                None => {
                    wrote_stderr = true;
                    std::io::stderr().write_all(line.as_bytes())
                }
            };
        }
        if self.also_stderr && level <= Level::Warn && !wrote_stderr {
            eprintln!("{}: [{}] {message}", name().word, level.name());
        }
    }

    pub fn emerg(&mut self, message: impl AsRef<str>) {
        self.write(Level::Emerg, message.as_ref());
    }

    pub fn alert(&mut self, message: impl AsRef<str>) {
        self.write(Level::Alert, message.as_ref());
    }

    pub fn error(&mut self, message: impl AsRef<str>) {
        self.write(Level::Error, message.as_ref());
    }

    pub fn notice(&mut self, message: impl AsRef<str>) {
        self.write(Level::Notice, message.as_ref());
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o644).open(path)
}

/// nginx's words for a call that failed on a file.
pub fn failed(call: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{call} \"{}\" failed ({})", path.display(), reason(error))
}

/// nginx's words for an error of the system: `2: No such file or directory`.
pub fn reason(error: &std::io::Error) -> String {
    let number = error.raw_os_error().unwrap_or_default();
    let text = error.to_string();
    let words = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    format!("{number}: {words}")
}

fn timestamp() -> String {
    net::process::local_time("%Y/%m/%d %H:%M:%S")
}
