//! Lines for log files, collected by each worker.
//!
//! Every thread has its own buffer per file, so writers share only the open file. Lines of a file
//! without `buffer=` are written once per turn of the worker's loop, before it sleeps: its owner
//! calls [`end_turn`]. A write has only whole lines and appends, so lines of several writers do not
//! mix. Lines that cannot be written are lost, which is logged at most once a minute per file and
//! thread.
//!
//! A writer keeps its file open until [`flush_all`] finds that no configuration holds the file any
//! more. So every writing thread must call it when a configuration is dropped.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Weak};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::files::{LogSlot, write_once};
use crate::lost::lose_text;
use crate::{Errno, Level, LogFile, Stamps, syslog};

/// Maximum number of bytes collected for a file without `buffer=`.
const TURN_BYTES_MAX: usize = 64 * 1024;
/// Memory that a writer keeps in addition to its file's `buffer=`.
const KEPT_MAX: usize = 2 * TURN_BYTES_MAX;
/// nginx's pause between two messages about one file.
const COMPLAINT_PAUSE_SECONDS: i64 = 59;

/// `buffer=`, `flush=`, `gzip=`: how lines for a file are buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// Size of the buffer in bytes.
    pub size: usize,
    /// Maximum time in the buffer; 0: unlimited.
    pub flush_ms: u64,
    /// The level of compression; 0: none.
    pub gzip: u32,
}

thread_local! {
    static WRITERS: RefCell<Writers> = RefCell::default();
}

/// This thread's writers.
#[derive(Default)]
struct Writers {
    /// Indexed by [`LogSlot::number`]: a slot keeps its number as long as there is a writer for it.
    list: Vec<Option<Writer>>,
    /// Numbers of slots with lines for the end of the turn.
    dirty: Vec<u32>,
}

struct Writer {
    slot: Arc<LogSlot>,
    /// Alive as long as a configuration holds the file.
    file: Weak<LogFile>,
    open: Option<(u32, Arc<File>)>,
    lines: Vec<u8>,
    packed: Vec<u8>,
    /// The second in which the disk was full: no write is tried until the next one.
    full_second: i64,
    told_second: i64,
}

/// Appends a line and its end. `Some`: the buffer was empty and must be flushed in this many
/// milliseconds; the caller sets a timer and calls [`flush`].
pub fn append(file: &Arc<LogFile>, write: impl FnOnce(&mut Vec<u8>)) -> Option<u64> {
    // The buffer is taken out meanwhile, since writing a line may itself log.
    let mut lines = WRITERS.with_borrow_mut(|writers| std::mem::take(&mut writers.of(file).lines));
    let start = lines.len();
    write(&mut lines);
    lines.push(b'\n');
    WRITERS.with_borrow_mut(|writers| writers.take_back(file, lines, start))
}

/// Writes the lines collected in this turn.
pub fn end_turn() {
    WRITERS.with_borrow_mut(|writers| {
        while let Some(number) = writers.dirty.pop() {
            writers.flush(number);
        }
    });
}

/// Writes the buffered lines of one file.
pub fn flush(file: &LogFile) {
    WRITERS.with_borrow_mut(|writers| writers.flush(file.number()));
}

/// Writes everything buffered on this thread, and closes its files and its sockets to syslog
/// servers. Called before the thread ends, after files were reopened, and after a configuration was
/// dropped.
pub fn flush_all() {
    syslog::forget_old();
    WRITERS.with_borrow_mut(|writers| {
        for writer in writers.list.iter_mut().flatten() {
            writer.flush();
            writer.open = None;
        }
        writers.forget_old();
    });
}

impl Writers {
    fn of(&mut self, file: &Arc<LogFile>) -> &mut Writer {
        let number = file.number() as usize;
        if self.list.len() <= number {
            self.list.resize_with(number + 1, || None);
        }
        self.list[number].get_or_insert_with(|| Writer::new(file))
    }

    /// Drops the writers of files of former configurations.
    fn forget_old(&mut self) {
        for place in &mut self.list {
            if let Some(writer) = place.as_mut().filter(|w| w.file.strong_count() == 0) {
                writer.flush();
                *place = None;
            }
        }
    }

    fn take_back(&mut self, file: &Arc<LogFile>, lines: Vec<u8>, start: usize) -> Option<u64> {
        let number = file.number();
        let writer = self.of(file);
        writer.lines = lines;
        let Some(buffering) = file.buffering() else {
            if writer.lines.len() > TURN_BYTES_MAX {
                writer.flush();
            } else if start == 0 {
                self.dirty.push(number);
            }
            return None;
        };
        if writer.lines.len() > buffering.size {
            writer.write_out(start);
            if writer.lines.len() > buffering.size {
                writer.flush();
            }
        }
        let first = start == 0 || writer.lines.len() < start;
        (first && !writer.lines.is_empty() && buffering.flush_ms > 0).then_some(buffering.flush_ms)
    }

    fn flush(&mut self, number: u32) {
        if let Some(Some(writer)) = self.list.get_mut(number as usize) {
            writer.flush();
        }
    }
}

/// A thread that ends writes its lines.
impl Drop for Writers {
    fn drop(&mut self) {
        self.list.iter_mut().flatten().for_each(Writer::flush);
    }
}

impl Writer {
    fn new(file: &Arc<LogFile>) -> Self {
        let never = i64::MIN / 2;
        Self {
            slot: file.slot().clone(),
            file: Arc::downgrade(file),
            open: None,
            lines: Vec::new(),
            packed: Vec::new(),
            full_second: never,
            told_second: never,
        }
    }

    fn flush(&mut self) {
        self.write_out(self.lines.len());
    }

    /// Writes the first `count` bytes, which are whole lines, and removes them even after an error.
    fn write_out(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let written = self.try_to_write(count);
        if written < count {
            lose_text(&self.lines[written..count]);
        }
        self.lines.drain(..count);
        let kept_max = self.slot.buffering().map_or(0, |buffering| buffering.size) + KEPT_MAX;
        for memory in [&mut self.lines, &mut self.packed] {
            if memory.capacity() > kept_max {
                memory.shrink_to(kept_max);
            }
        }
    }

    /// Returns how many bytes were written, and logs why it is not all.
    fn try_to_write(&mut self, count: usize) -> usize {
        if self.full_second == Stamps::now().second() {
            return 0;
        }
        let Some(file) = self.open() else { return 0 };
        match self.write(&file, count) {
            Ok(written) if written < count => {
                self.tell_incomplete(written, count);
                written
            }
            Ok(written) => written,
            Err(error) => {
                self.tell(&error);
                0
            }
        }
    }

    fn write(&mut self, file: &File, count: usize) -> io::Result<usize> {
        let lines = &self.lines[..count];
        let level = self.slot.buffering().map_or(0, |buffering| buffering.gzip);
        if level == 0 {
            return write_once(file, lines);
        }
        self.packed.clear();
        let mut packer = GzEncoder::new(&mut self.packed, Compression::new(level));
        packer.write_all(lines)?;
        packer.finish()?;
        match write_once(file, &self.packed)? {
            written if written == self.packed.len() => Ok(count),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// The open file, looked up again only after it was replaced.
    fn open(&mut self) -> Option<Arc<File>> {
        let version = self.slot.version();
        if self.open.as_ref().is_none_or(|(seen, _)| *seen != version) {
            self.open = self.slot.current().map(|file| (version, file));
        }
        self.open.as_ref().map(|(_, file)| file.clone())
    }

    fn tell(&mut self, error: &io::Error) {
        let second = Stamps::now().second();
        if error.kind() == io::ErrorKind::StorageFull {
            self.full_second = second;
        }
        if self.may_tell(second) {
            let (path, reason) = (self.slot.path().display(), Errno(error));
            crate::log(Level::Alert, format_args!("write() to \"{path}\" failed{reason}"));
        }
    }

    fn tell_incomplete(&mut self, written: usize, count: usize) {
        if self.may_tell(Stamps::now().second()) {
            let path = self.slot.path().display();
            crate::log(
                Level::Alert,
                format_args!("write() to \"{path}\" was incomplete: {written} of {count}"),
            );
        }
    }

    fn may_tell(&mut self, second: i64) -> bool {
        let may = second - self.told_second > COMPLAINT_PAUSE_SECONDS;
        if may {
            self.told_second = second;
        }
        may
    }
}

#[cfg(test)]
mod tests;
