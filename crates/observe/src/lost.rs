//! The number of log lines that could not be written.

use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by all threads, and touched only when lines are lost.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The number of lines that this process could not write: to a file, to standard error or to a
/// syslog server.
pub fn lost_log_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Counts one lost line.
pub fn lose_line() {
    lose_lines(1);
}

/// Counts lost lines.
pub(crate) fn lose_lines(count: u64) {
    LOST.fetch_add(count, Ordering::Relaxed);
}

/// Counts the lines that end in a text that was not written.
pub(crate) fn lose_text(text: &[u8]) {
    lose_lines(text.iter().filter(|byte| **byte == b'\n').count() as u64);
}
