//! `store`: saves replies as files.
//!
//! A reply goes to a temporary file while it goes to the client. The complete file is moved to its
//! final path, so an incomplete one never appears there.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

use conf::bytes_path;
use observe::{Errno, Level, Text};

use super::Conf;
use super::fetch::{ReplySink, SinkFailed};
use super::values::Store;
use crate::exchange::{Chunk, DetachedLog, Exchange, FileSlice};
use crate::files::{TempFile, TempFileEnd, TempPath};

/// Bytes copied at once from the temporary file of a buffered reply.
const COPY_SIZE: u64 = 64 * 1024;

/// The file of a reply being saved.
pub(super) struct StoredReply {
    file: TempFile,
    place: PathBuf,
    mode: u32,
    /// `Last-Modified`, if it is valid.
    modified: Option<i64>,
    log: Rc<DetachedLog>,
}

impl StoredReply {
    /// The file for this exchange's reply, if the reply is to be stored. If the file cannot be
    /// created, that is logged and the reply is not stored.
    pub(super) fn begin(x: &mut Exchange, conf: &Conf, temp_path: &TempPath) -> Option<Box<Self>> {
        if matches!(conf.store, Store::Off) || x.reply.status != 200 || x.request.header_only {
            return None;
        }
        let action = std::mem::replace(&mut x.action, "reading upstream");
        let stored = Self::create(x, conf, temp_path);
        x.action = action;
        stored.map(Box::new)
    }

    fn create(x: &mut Exchange, conf: &Conf, temp_path: &TempPath) -> Option<Self> {
        let mut place = Vec::new();
        match &conf.store {
            Store::Off => return None,
            Store::On => x.append_path(&mut place).then_some(())?,
            Store::At(template) => template.render(x, &mut place),
        }
        if place.is_empty() {
            return None;
        }
        match temp_path.create(TempFileEnd::Deleted) {
            Ok(file) => Some(Self {
                file,
                place: bytes_path(&place).to_owned(),
                mode: conf.store_access.0,
                modified: x.reply.last_modified,
                log: x.aside(),
            }),
            Err((path, error)) => {
                let (path, errno) = (path.display(), Errno(&error));
                x.log(Level::Crit, format_args!("open() \"{path}\" failed{errno}"));
                None
            }
        }
    }

    fn log_failure(&self, call: &str, error: &io::Error) {
        let (path, errno) = (self.file.path().display(), Errno(error));
        self.log.write(Level::Crit, format_args!("{call} \"{path}\" failed{errno}"));
    }
}

impl ReplySink for StoredReply {
    fn put(&mut self, piece: &Chunk) -> Result<(), SinkFailed> {
        let written = match piece {
            Chunk::Bytes(bytes) => self.file.append(bytes.as_ref()),
            Chunk::File(slice) => copy(slice, &mut self.file),
            Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => Ok(()),
        };
        written.map_err(|error| {
            self.log_failure("pwrite()", &error);
            SinkFailed
        })
    }

    fn end(self: Box<Self>) {
        if let Err((call, error)) = self.file.prepare(self.mode, self.modified) {
            return self.log_failure(call, &error);
        }
        let Self { file, place, mode, log, .. } = *self;
        let from = file.path().to_owned();
        let Err((call, error)) = file.move_to(&place, mode) else { return };
        let (from, place, errno) =
            (from.display(), Text(place.as_os_str().as_bytes()), Errno(&error));
        let what = match call {
            "rename()" => format!("{call} \"{from}\" to"),
            _ => call.to_owned(),
        };
        log.write(Level::Crit, format_args!("{what} \"{place}\" failed{errno}"));
    }

    fn log(&self) -> &Rc<DetachedLog> {
        &self.log
    }
}

fn copy(slice: &FileSlice, file: &mut TempFile) -> io::Result<()> {
    let mut buffer = vec![0; slice.len().min(COPY_SIZE) as usize];
    let mut start = slice.start;
    while start < slice.end {
        let count = (slice.end - start).min(buffer.len() as u64) as usize;
        slice.file.read_exact_at(&mut buffer[..count], start)?;
        file.append(&buffer[..count])?;
        start += count as u64;
        net::spend(count);
    }
    Ok(())
}
