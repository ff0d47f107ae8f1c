//! A log file whose name has variables: it is opened for each line, or kept open by
//! `open_log_file_cache`.

use std::io::{self, Write};
use std::sync::atomic::{AtomicI64, Ordering};

use conf::{Directive, Load, Result, Template, Word};
use observe::{Errno, Level, Stamps, Text};

use super::cache::LogFileCache;
use super::logged::LoggedSession;

/// nginx's pause between two messages about failed writes to the same log.
const COMPLAINT_PAUSE_SECONDS: i64 = 59;

/// The template of the name.
pub(super) struct LogPath {
    template: Template,
    told_second: AtomicI64,
}

impl LogPath {
    pub(super) fn parse(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let path = load.path(&word.text).into_os_string().into_encoded_bytes();
        let template = Template::from_bytes(&path, word, from, load)?;
        Ok(Self { template, told_second: AtomicI64::new(i64::MIN / 2) })
    }

    /// Writes a line, which `make` appends. The session must admit it first: names invented by
    /// clients could fill the disk.
    pub(super) fn write<X: LoggedSession>(
        &self,
        x: &mut X,
        cache: &LogFileCache,
        make: impl FnOnce(&mut X, &mut Vec<u8>),
    ) {
        if !x.admits_log_paths() {
            return;
        }
        let mut path = Vec::new();
        self.template.render(x, &mut path);
        let file = match cache.open(&path) {
            Ok(file) => file,
            Err(error) => {
                observe::lose_line();
                let (path, reason) = (Text(&path), Errno(&error));
                x.log(Level::Crit, format_args!("open() \"{path}\" failed{reason}"));
                return;
            }
        };
        let mut line = Vec::new();
        make(x, &mut line);
        let outcome = match (&*file).write(&line) {
            Ok(written) if written == line.len() => return,
            Ok(written) => PathOutcome::Incomplete(written, line.len()),
            Err(error) => PathOutcome::Failed(error),
        };
        observe::lose_line();
        self.tell(x, &path, outcome);
    }

    fn tell<X: LoggedSession>(&self, x: &X, path: &[u8], outcome: PathOutcome) {
        let second = Stamps::now().second();
        if second - self.told_second.load(Ordering::Relaxed) <= COMPLAINT_PAUSE_SECONDS {
            return;
        }
        self.told_second.store(second, Ordering::Relaxed);
        let path = Text(path);
        match outcome {
            PathOutcome::Failed(error) => {
                let reason = Errno(&error);
                x.log(Level::Alert, format_args!("write() to \"{path}\" failed{reason}"));
            }
            PathOutcome::Incomplete(written, length) => x.log(
                Level::Alert,
                format_args!("write() to \"{path}\" was incomplete: {written} of {length}"),
            ),
        }
    }
}

enum PathOutcome {
    Failed(io::Error),
    Incomplete(usize, usize),
}
