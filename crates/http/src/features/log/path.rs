//! A log file whose name has variables: opened for each line, or kept by `open_log_file_cache`.

use std::io::{self, Write};
use std::sync::atomic::{AtomicI64, Ordering};

use conf::{Directive, Load, Result, Template, Word, bytes_path};
use observe::{Errno, Level, Stamps};

use super::cache::LogFileCache;
use crate::exchange::Exchange;

/// Linux's number for what is no directory.
const ENOTDIR: i32 = 20;
/// nginx's pause between two complaints about one log.
const COMPLAINT_PAUSE_SECONDS: i64 = 59;

/// The name of the file.
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

    /// Writes a line, which `make` appends. A name that a client can make up must not fill the
    /// disk: nothing is written where the location's root does not exist.
    pub(super) fn write(
        &self,
        x: &mut Exchange,
        cache: &LogFileCache,
        make: impl FnOnce(&mut Exchange, &mut Vec<u8>),
    ) {
        if !root_exists(x) {
            return;
        }
        let path = x.render(&self.template);
        let file = match cache.open(&path) {
            Ok(file) => file,
            Err(error) => {
                let (path, reason) = (String::from_utf8_lossy(&path), Errno(&error));
                x.log(Level::Crit, format_args!("open() \"{path}\" failed{reason}"));
                return;
            }
        };
        let mut line = Vec::new();
        make(x, &mut line);
        match (&*file).write(&line) {
            Ok(written) if written == line.len() => {}
            Ok(written) => self.tell(x, &path, Outcome::Incomplete(written, line.len())),
            Err(error) => self.tell(x, &path, Outcome::Failed(error)),
        }
    }

    fn tell(&self, x: &Exchange, path: &[u8], outcome: Outcome) {
        let second = Stamps::now().second();
        if second - self.told_second.load(Ordering::Relaxed) <= COMPLAINT_PAUSE_SECONDS {
            return;
        }
        self.told_second.store(second, Ordering::Relaxed);
        let path = String::from_utf8_lossy(path);
        match outcome {
            Outcome::Failed(error) => {
                let reason = Errno(&error);
                x.log(Level::Alert, format_args!("write() to \"{path}\" failed{reason}"));
            }
            Outcome::Incomplete(written, length) => x.log(
                Level::Alert,
                format_args!("write() to \"{path}\" was incomplete: {written} of {length}"),
            ),
        }
    }
}

enum Outcome {
    Failed(io::Error),
    Incomplete(usize, usize),
}

fn root_exists(x: &mut Exchange) -> bool {
    let mut root = x.scratch();
    x.append_document_root(&mut root);
    let found = std::fs::metadata(bytes_path(&root));
    let error = match found {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(io::Error::from_raw_os_error(ENOTDIR)),
        Err(error) => Some(error),
    };
    if let Some(error) = &error {
        let (path, reason) = (String::from_utf8_lossy(&root), Errno(error));
        x.log(Level::Error, format_args!("testing \"{path}\" existence failed{reason}"));
    }
    x.give_scratch(root);
    error.is_none()
}
