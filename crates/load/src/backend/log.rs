//! A line for each request, to compare with the results of a load generator.
//!
//! Times are microseconds since 1970: the wall clock's time at the start plus that of the monotonic
//! clock. Each thread collects lines and writes them before it sleeps.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::complaint::complain;

/// The most bytes of lines to collect.
const COLLECTED_MAX: usize = 64 * 1024;

/// One thread's end of the file.
pub(super) struct ThreadLog {
    file: File,
    /// The same time by both clocks.
    moment: (Instant, u64),
    lines: RefCell<Vec<u8>>,
}

/// The outcome of a request.
pub(super) struct LogEntry<'l> {
    /// When its head was complete.
    pub(super) arrived: Instant,
    /// When the reply's first byte was about to be written, or the connection was closed instead.
    pub(super) begun: Instant,
    /// When its last byte was about to be written.
    pub(super) written: Instant,
    /// The status; 0 without a reply.
    pub(super) status: u16,
    /// Bytes of the reply, including its head.
    pub(super) bytes: u64,
    /// Method and target.
    pub(super) request: &'l str,
}

impl ThreadLog {
    /// Opens the file, empty.
    pub(super) fn create(path: &Path) -> Result<Self, String> {
        let file = open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let moment = (Instant::now(), unix.as_micros() as u64);
        Ok(Self { file, moment, lines: RefCell::default() })
    }

    /// The same file for another thread.
    pub(super) fn share(&self) -> Result<Self, String> {
        let file = self.file.try_clone().map_err(|error| format!("dup(): {error}"))?;
        Ok(Self { file, moment: self.moment, lines: RefCell::default() })
    }

    pub(super) fn add(&self, line: &LogEntry<'_>) {
        let mut lines = self.lines.borrow_mut();
        let times = [line.arrived, line.begun, line.written].map(|at| self.unix_us(at));
        let [arrived, begun, written] = times;
        let LogEntry { status, bytes, request, .. } = line;
        let written = writeln!(lines, "{arrived} {begun} {written} {status} {bytes} {request}");
        debug_assert!(written.is_ok(), "memory takes all");
        if lines.len() >= COLLECTED_MAX {
            drop(lines);
            self.flush();
        }
    }

    pub(super) fn flush(&self) {
        let mut lines = self.lines.borrow_mut();
        if lines.is_empty() {
            return;
        }
        if let Err(error) = (&self.file).write_all(&lines) {
            complain(&format!("the log: {error}"));
        }
        lines.clear();
    }

    fn unix_us(&self, at: Instant) -> u64 {
        let (then, unix_us) = self.moment;
        unix_us + at.saturating_duration_since(then).as_micros() as u64
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    // Only files are truncated, not pipes or terminals.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}
